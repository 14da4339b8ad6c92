"""`Instances`: the instances of an application that answer queries on this machine, and their common token.

Each instance has a file below the state folder of the application, which only its owner may read. The token is in the
same folder. An instance that starts while no other runs creates a new token.
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
    """A process that answers queries.

    Parameters
    ----------
    application_id : str
    address : str
        `host:port`.
    pid : int
    certificate : str
        The path of its certificate if it uses TLS, else empty.
    """

    application_id: str
    address: str
    pid: int
    certificate: str = ""


def running_instances(state_dir: Path) -> list[Instance]:
    """Return the running instances of all applications with state in a folder, by application and address."""
    instances = (_read_instance(file) for file in state_dir.glob(f"*/{_FOLDER}/*.json"))
    running = (instance for instance in instances if instance is not None and _is_alive(instance.pid))
    return sorted(running, key=lambda instance: (instance.application_id, instance.address))


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
        """Return the instances whose process runs, by address."""
        instances = running_instances(Path(self._config["state.dir"]))
        return [instance for instance in instances if instance.application_id == self._config.application_id]

    def token(self) -> str:
        """Return the token of the running instances.

        Raises
        ------
        StateError
            If there is no token.
        """
        try:
            return self.token_file.read_text().strip()
        except FileNotFoundError:
            raise StateError(f"no instance of {self._config.application_id} answers on this machine") from None

    @contextmanager
    def registered(self, instance: Instance) -> Iterator[str]:
        """Register an instance for the `with` block, which gets the token."""
        path = self.folder / f"{instance.pid}-{quote(instance.address, safe='')}.json"
        with self._locked():
            token = self._current_token()
            write_private(path, msgspec.json.encode(instance))
        try:
            yield token
        finally:
            path.unlink(missing_ok=True)

    def _current_token(self) -> str:
        """Return the token in `server.token.file` if it is set, else that of the running instances, else a new one."""
        if self._config["server.token.file"] is not None:
            if not self.token_file.exists():
                raise ConfigError(f"there is no file {self.token_file} (server.token.file): write a token into it")
            if not is_private(self.token_file):
                raise ConfigError(f"others may read {self.token_file} (server.token.file): run chmod 600 on it")
            return self.token()
        if not self.running() or not self.token_file.exists():
            for stale_file in self.folder.glob("*.json"):
                stale_file.unlink()
            write_private(self.token_file, secrets.token_urlsafe(32).encode())
        return self.token()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Exclude other processes that register."""
        private_folder(self.folder)
        file = private_file(self.folder / "lock")
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)


def _read_instance(file: Path) -> Instance | None:
    """Return the instance in a file; None if the instance has removed the file since the folder was listed."""
    try:
        return decode_json(file.read_bytes(), Instance)
    except FileNotFoundError:
        return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
