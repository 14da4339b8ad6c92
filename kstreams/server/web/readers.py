"""`Readers`: who may read which stores. The token of the application reads all; others are named in a file."""

from __future__ import annotations

import hmac
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from kstreams.errors import ConfigError
from kstreams.kernel.decoders import convert
from kstreams.os.private import is_private

LEAST_TOKEN = 16


class Reader(NamedTuple):
    """Somebody with a token.

    Parameters
    ----------
    name : str
    stores : frozenset of str or None
        What it may read, of what is declared queryable; None: all, and what else the server tells.
    """

    name: str
    stores: frozenset[str] | None

    def may_read(self, store: str) -> bool:
        """Whether it may know of a store.

        Examples
        --------
        >>> Reader("reports", frozenset({"counts"})).may_read("totals")
        False
        """
        return self.stores is None or store in self.stores


OWNER = Reader("the server", None)
NOBODY = Reader("nobody", frozenset())


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    token: str
    stores: list[str]


class Readers:
    """Knows readers by their tokens.

    Parameters
    ----------
    token : str
        Of the owner.
    others : mapping of str to Reader
        By token.

    Raises
    ------
    ConfigError
        When a token is too short.
    """

    def __init__(self, token: str, other_readers: Mapping[str, Reader]) -> None:
        readers = {**other_readers, token: OWNER}
        for reader_token, reader in readers.items():
            if len(reader_token) < LEAST_TOKEN or not reader_token.isascii():
                raise ConfigError(
                    f"the token of {reader.name} needs at least {LEAST_TOKEN} characters, all of them ASCII"
                )
        if len(readers) == len(other_readers):
            raise ConfigError(f"{other_readers[token].name} has the token of the application: it needs one of its own")
        self._known = [(reader_token.encode(), reader) for reader_token, reader in readers.items()]

    def of(self, authorization: bytes) -> Reader | None:
        """Whose `Authorization` it is; all tokens are compared, each in constant time."""
        scheme, _, credentials = authorization.partition(b" ")
        matching = None
        text = credentials.strip()
        for token, reader in self._known:
            if hmac.compare_digest(text, token):
                matching = reader
        return matching if scheme.lower() == b"bearer" else None


def readers_in(path: Path | None) -> dict[str, Reader]:
    """The readers in a file (`server.readers.file`), by token: a table for each, with `token` and `stores`.

    Raises
    ------
    ConfigError
        When there is no such file, others may read it, or it says something else.
    """
    if path is None:
        return {}
    if not path.exists():
        raise ConfigError(f"there is no file {path} (server.readers.file)")
    if not is_private(path):
        raise ConfigError(f"others may read {path} (server.readers.file): chmod 600 it")
    try:
        entries = convert(tomllib.loads(path.read_text()), dict[str, _Entry])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} (server.readers.file) is no list of readers: {error}") from None
    readers = {entry.token: Reader(name, frozenset(entry.stores)) for name, entry in entries.items()}
    if len(readers) < len(entries):
        raise ConfigError(f"two readers in {path} (server.readers.file) have the same token")
    return readers
