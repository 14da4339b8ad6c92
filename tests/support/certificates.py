"""Certificates of an authority of the tests' own, made by openssl."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

_DAYS = "2"


def can_make() -> bool:
    """Whether openssl is on this machine."""
    return shutil.which("openssl") is not None


class Authority:
    """An authority that signs certificates of servers; its own is what clients trust.

    Parameters
    ----------
    folder : Path
        Where its files go; made.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder, self.certificate, self._key = folder, folder / "authority.pem", folder / "authority.key"
        self._openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=authority of tests", "-days", _DAYS),
            *("-keyout", self._key, "-out", self.certificate),
        )

    def server(self, name: str) -> Path:
        """A file with a new private key and its certificate for a server, such as `IP:127.0.0.1` or `DNS:elsewhere`."""
        base = self._folder / name.replace(":", "-")
        request, key, certificate, extensions = (base.with_suffix(end) for end in (".csr", ".key", ".crt", ".ext"))
        extensions.write_text(f"subjectAltName={name}\n")
        self._openssl(
            *("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=broker of tests"),
            *("-keyout", key, "-out", request),
        )
        self._openssl(
            *("x509", "-req", "-in", request, "-days", _DAYS, "-extfile", extensions, "-out", certificate),
            *("-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial"),
        )
        both = base.with_suffix(".pem")
        both.write_text(key.read_text() + certificate.read_text())
        return both

    def _openssl(self, *arguments: str | Path) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
