"""`kstreams doctor`: checks whether this machine meets the requirements of kstreams."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import typer

from kstreams.cli.options import AsJson, LogDir
from kstreams.cli.output import print_rows

CORE = ("pyarrow", "rocksdict", "msgspec", "narwhals", "numpy")
EXTRAS = {"pyspark": "spark", "delta-spark": "spark", "pandas": "spark", "confluent-kafka": "kafka", "duckdb": "sql"}
JAVA_AT_LEAST = 17
FREE_AT_LEAST = 1 << 30
REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "vboxsf", "afs"})


class Finding(NamedTuple):
    """The result of a check: `ok`, `missing` (an optional part is not installed) or `problem`."""

    check: str
    status: str
    detail: str


def doctor(as_json: AsJson = False, log_dir: LogDir = None) -> None:
    """Check Python, packages, Java, Spark, disk and file system; exit status 1 if a requirement is not met.

    Example: `kstreams doctor --json`
    """
    from kstreams.cli.home import home_named

    folder = home_named(log_dir, create=True).folder
    findings = [*_packages(), _java(), *([] if folder is None else _disk(folder)), _rocksdb()]
    print_rows((finding._asdict() for finding in findings), as_json=as_json)
    if any(finding.status == "problem" for finding in findings):
        raise typer.Exit(1)


def _packages() -> Iterator[Finding]:
    yield Finding("python", "ok", f"{sys.version.split()[0]} at {sys.executable}")
    for name in CORE:
        yield _package(name, "problem", "install kstreams again: pip install . in its clone")
    for name, extra in EXTRAS.items():
        yield _package(name, "missing", f"optional; install it with: pip install '.[{extra}]' in the clone of kstreams")


def _package(name: str, status_if_absent: str, advice: str) -> Finding:
    try:
        return Finding(name, "ok", version(name))
    except PackageNotFoundError:
        return Finding(name, status_if_absent, advice)


def _java() -> Finding:
    advice = f"the Spark engine needs Java {JAVA_AT_LEAST} or newer"
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else "java"
    try:
        printed = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return Finding("java", "missing", f"not found; {advice}")
    number = re.search(r'version "(\d+)', printed)
    if number and int(number[1]) < JAVA_AT_LEAST:
        return Finding("java", "missing", f"{number[1]} is too old; {advice}")
    return Finding("java", "ok", printed.splitlines()[0])


def _disk(folder: Path) -> Iterator[Finding]:
    existing_folder = _nearest(folder)
    free = shutil.disk_usage(existing_folder).free
    status = "ok" if free >= FREE_AT_LEAST else "problem"
    yield Finding("disk", status, f"{free / (1 << 30):.1f} GiB free for {folder}")
    yield _attempt("write", lambda: _write(existing_folder))
    kind = _file_system(existing_folder)
    if kind in REMOTE:
        yield Finding("file system", "problem", f"{kind} is a network file system; the log needs a local disk")
    else:
        yield Finding("file system", "ok", kind)


def _nearest(folder: Path) -> Path:
    """Return the folder, or its nearest parent that exists."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())


def _write(folder: Path) -> str:
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        file.write(b"kstreams")
        file.flush()
        os.fsync(file.fileno())
    return f"files in {folder} can be written and synced"


def _file_system(folder: Path) -> str:
    """Return the kind of the file system in Linux, or `unknown` on other systems."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return "unknown"
    paths = {str(folder), *map(str, folder.parents)}
    mount_points = [(len(path), kind) for _, path, kind, *_ in mounts if path in paths]
    return max(mount_points, default=(0, "unknown"))[1]


def _rocksdb() -> Finding:
    return _attempt("rocksdb", _open_store)


def _open_store() -> str:
    from kstreams.serdes import serde_of
    from kstreams.state import open_task_state, store_kinds
    from kstreams.state.api import StoreBuilder

    probe = StoreBuilder("probe", store_kinds.KEY_VALUE, serde_of(str), serde_of(str))
    with tempfile.TemporaryDirectory() as folder:
        open_task_state([probe], Path(folder)).close()
    return "a store can be opened and closed"


def _attempt(check: str, action: Callable[[], str]) -> Finding:
    try:
        return Finding(check, "ok", action())
    except Exception as error:
        return Finding(check, "problem", f"{type(error).__name__}: {error}")
