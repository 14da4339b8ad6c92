"""`Readers`: the tokens, and the stores that each may read. The token of the application may read all stores."""

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

MIN_TOKEN_LENGTH = 16


class Reader(NamedTuple):
    """A client with a token.

    Parameters
    ----------
    name : str
    stores : frozenset of str or None
        The queryable stores that it may read. None for all stores and all other routes.
    """

    name: str
    stores: frozenset[str] | None

    def may_read(self, store: str) -> bool:
        """Return True if the reader may read a store.

        Examples
        --------
        >>> Reader("reports", frozenset({"counts"})).may_read("totals")
        False
        """
        return self.stores is None or store in self.stores


FULL_ACCESS = Reader("the server", None)
ANONYMOUS = Reader("nobody", frozenset())


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    token: str
    stores: list[str]


class Readers:
    """The readers by their tokens.

    Parameters
    ----------
    token : str
        The token of the application.
    other_readers : mapping of str to Reader
        The other readers by token.

    Raises
    ------
    ConfigError
        If a token is too short, or another reader has the token of the application.
    """

    def __init__(self, token: str, other_readers: Mapping[str, Reader]) -> None:
        readers = {**other_readers, token: FULL_ACCESS}
        for reader_token, reader in readers.items():
            if len(reader_token) < MIN_TOKEN_LENGTH or not reader_token.isascii():
                raise ConfigError(
                    f"the token of {reader.name} needs at least {MIN_TOKEN_LENGTH} characters, all of them ASCII"
                )
        if len(readers) == len(other_readers):
            raise ConfigError(f"{other_readers[token].name} has the token of the application: it needs one of its own")
        self._readers = [(reader_token.encode(), reader) for reader_token, reader in readers.items()]

    def of(self, authorization: bytes) -> Reader | None:
        """Return the reader of a header `Authorization`. Each token is compared in constant time."""
        scheme, _, credentials = authorization.partition(b" ")
        matching_reader = None
        credential = credentials.strip()
        for token, reader in self._readers:
            if hmac.compare_digest(credential, token):
                matching_reader = reader
        return matching_reader if scheme.lower() == b"bearer" else None


def readers_in(path: Path | None) -> dict[str, Reader]:
    """Return the readers in a file (`server.readers.file`), by token. Each has a table with `token` and `stores`.

    Raises
    ------
    ConfigError
        If the file does not exist, other users may read it, or it is malformed.
    """
    if path is None:
        return {}
    if not path.exists():
        raise ConfigError(f"there is no file {path} (server.readers.file)")
    if not is_private(path):
        raise ConfigError(f"others may read {path} (server.readers.file): run chmod 600 on it")
    try:
        entries = convert(tomllib.loads(path.read_text()), dict[str, _Entry])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} (server.readers.file) is no list of readers: {error}") from None
    readers = {entry.token: Reader(name, frozenset(entry.stores)) for name, entry in entries.items()}
    if len(readers) < len(entries):
        raise ConfigError(f"two readers in {path} (server.readers.file) have the same token")
    return readers
