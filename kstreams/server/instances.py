"""Which instances of an application answer on this machine: a file for each, and the token that they share.

They lie below the state folder of the application, for its owner alone. The token is made when the first instance
starts, and is another one when none was left.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import msgspec

from kstreams.config import Config
from kstreams.errors import ConfigError, StateError
from kstreams.kernel.decoders import decode_json
from kstreams.os.private import is_private, private_file, private_folder, write_private
from kstreams.runtime.native.state.locks import state_folder

_FOLDER = ".server"


class Instance(msgspec.Struct, frozen=True):
    """A process that answers.

    Parameters
    ----------
    application_id : str
    address : str
        `host:port`.
    pid : int
    certificate : str
        The file by which to know it, where it speaks TLS.
    """

    application_id: str
    address: str
    pid: int
    certificate: str = ""


def running_below(state_dir: Path) -> list[Instance]:
    """The instances of all applications that keep their state in a folder, by application and address."""
    files = state_dir.glob(f"*/{_FOLDER}/*.json")
    notes = (_noted(file) for file in files)
    alive = (note for note in notes if note is not None and _lives(note.pid))
    return sorted(alive, key=lambda note: (note.application_id, note.address))


class Instances:
    """The instances of an application on this machine.

    Parameters
    ----------
    config : Config
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self.folder = state_folder(config) / _FOLDER
        self.token_file: Path = config["server.token.file"] or self.folder / "token"

    def running(self) -> list[Instance]:
        """Those whose process lives, by address."""
        below = running_below(Path(self._config["state.dir"]))
        return [instance for instance in below if instance.application_id == self._config.application_id]

    def token(self) -> str:
        """The token of those that run.

        Raises
        ------
        StateError
            When there is none.
        """
        try:
            return self.token_file.read_text().strip()
        except FileNotFoundError:
            raise StateError(f"no instance of {self._config.application_id} answers on this machine") from None

    @contextmanager
    def joined(self, instance: Instance) -> Iterator[str]:
        """Be one of them inside; gives the token."""
        path = self.folder / f"{instance.pid}-{quote(instance.address, safe='')}.json"
        with self._alone():
            token = self._own_token()
            write_private(path, msgspec.json.encode(instance))
        try:
            yield token
        finally:
            path.unlink(missing_ok=True)

    def _own_token(self) -> str:
        """The token of those that run, else a new one; that of the configuration where it names a file."""
        if self._config["server.token.file"] is not None:
            if not self.token_file.exists():
                raise ConfigError(f"there is no file {self.token_file} (server.token.file): write a token into it")
            if not is_private(self.token_file):
                raise ConfigError(f"others may read {self.token_file} (server.token.file): chmod 600 it")
            return self.token()
        if not self.running() or not self.token_file.exists():
            for stale_file in self.folder.glob("*.json"):
                stale_file.unlink()
            write_private(self.token_file, secrets.token_urlsafe(32).encode())
        return self.token()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        private_folder(self.folder)
        file = private_file(self.folder / "lock")
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)


def _noted(file: Path) -> Instance | None:
    """The instance of a file; None where it has ended since the folder was listed."""
    try:
        return decode_json(file.read_bytes(), Instance)
    except FileNotFoundError:
        return None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
