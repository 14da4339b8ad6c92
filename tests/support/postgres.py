"""A real PostgreSQL for tests: a server on loopback with logical replication, whose data is deleted with it.

    with Postgres() as server:
        psycopg.connect(server.url)

The programs of the server are looked for in KSTREAMS_POSTGRES_BIN, else where Debian puts them.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BIN = Path(os.environ.get("KSTREAMS_POSTGRES_BIN", "/usr/lib/postgresql/15/bin"))
NEEDED = f"needs a PostgreSQL server (looked for {BIN}/postgres; KSTREAMS_POSTGRES_BIN names another folder)"
_PASSWORD = "postgres"


def can_run() -> bool:
    """Whether this machine has the programs of a server."""
    return (BIN / "postgres").exists() and (BIN / "initdb").exists()


class Postgres:
    """A server. As root, it runs as `nobody`, since PostgreSQL refuses root."""

    def __init__(self, settings: Mapping[str, object] | None = None) -> None:
        self._account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self.home = Path(tempfile.mkdtemp(prefix="pg-"))
        self.port = _free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._settings: dict[str, object] = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "wal_level": "logical",
            "max_replication_slots": 10,
            "max_wal_senders": 10,
            "wal_sender_timeout": "5min",
            "shared_buffers": "32MB",
            "fsync": "off",
            **(settings or {}),
        }

    @property
    def url(self) -> str:
        return f"postgresql://postgres:{_PASSWORD}@127.0.0.1:{self.port}/postgres"

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=postgres password={_PASSWORD} dbname=postgres"

    def __enter__(self) -> Postgres:
        try:
            self._initialize()
            self.launch()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _initialize(self) -> None:
        secret = self.home / "password"
        secret.write_text(_PASSWORD)
        if self._account:
            for path in (self.home, secret):
                os.chown(path, self._account.pw_uid, self._account.pw_gid)
        data = str(self.home / "data")
        options = ["-U", "postgres", "-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "--no-sync"]
        self._run("initdb", "-D", data, *options, f"--pwfile={secret}").check_returncode()

    def launch(self, timeout: float = 60) -> None:
        """Start the server on its data, and wait until it answers; also after `kill`."""
        settings = [text for key, value in self._settings.items() for text in ("-c", f"{key}={value}")]
        command = [str(BIN / "postgres"), "-D", str(self.home / "data"), *settings]
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **self._process_options()
            )
        deadline = time.monotonic() + timeout
        while self._run("pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)).returncode:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL is not ready:\n{self.log()[-3000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """Crash: all processes of the server end at once, without a checkpoint."""
        assert self.process is not None
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # fast shutdown
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def log(self) -> str:
        return (self.home / "log").read_text()

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = [str(BIN / program), *arguments]
        return subprocess.run(command, stdout=subprocess.DEVNULL, check=False, **self._process_options())

    def _process_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"cwd": self.home}
        if self._account:
            options |= {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}
        return options


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
