"""A schema registry server: a program in Go on franz-go's registry for tests, built when it is first needed.

with RegistryServer() as server:
    config = Config.of(schema_registry_url=server.url)
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

SOURCE = Path(__file__).parent / "schema_registry"


@functools.cache
def program() -> Path:
    """The built program, in the user's cache; the test is skipped where there is no Go."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("the schema registry server is a program in Go: install Go 1.24 or newer")
    files = sorted(path for path in SOURCE.iterdir() if path.suffix in (".go", ".mod", ".sum"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kstreams-tests"
    built = cache / f"schema-registry-{digest}"
    if not built.exists():
        cache.mkdir(parents=True, exist_ok=True)
        spare = built.with_suffix(f".{os.getpid()}")
        command = [go, "build", "-o", str(spare), "."]
        done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, check=False, timeout=240)
        if done.returncode != 0:
            pytest.skip(f"the schema registry server cannot be built: {done.stderr[-300:]}")
        spare.replace(built)
    return built


class RegistryServer:
    """A running server; its schemas are gone when it ends.

    Parameters
    ----------
    authorization : str
        The `Authorization` header that it asks for; none when empty.
    address : str
        Host and port; a free port unless given.
    certificate : Path or str
        A file with its key and certificate; then it speaks TLS.
    clients : Path or str
        The certificate of the authority of the certificates that clients must show.
    """

    def __init__(
        self,
        *,
        authorization: str = "",
        address: str = "127.0.0.1:0",
        certificate: Path | str = "",
        clients: Path | str = "",
    ) -> None:
        command = [str(program()), "-address", address, "-authorization", authorization]
        command += ["-certificate", str(certificate), "-clients", str(clients)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url.startswith("http"), "the server did not start"

    @property
    def address(self) -> str:
        return self.url.removeprefix("http://")

    def fail(self, count: int, status: int = 500, *, code: int = 50001, message: str = "the store is down") -> None:
        """Let the next requests fail; counts requests anew."""
        self._replace(count=count, status=status, code=code, message=message)

    def answer(self, body: Any) -> None:
        """Answer the next request with this; counts requests anew."""
        self._replace(count=1, status=200, body=body)

    def _replace(self, **faults: Any) -> None:
        body = json.dumps(faults).encode()
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/faults", body, method="PUT")).close()

    @property
    def requests(self) -> int:
        """How many requests there were since `fail`."""
        with urllib.request.urlopen(f"{self.url}/faults") as answer:
            state: dict[str, Any] = json.load(answer)
        return int(state["requests"])

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> RegistryServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()
