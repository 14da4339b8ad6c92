"""A folder to work in, and a hand that types commands."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kstreams.cli import main


class Outcome(NamedTuple):
    """What a command did."""

    status: int
    out: str
    err: str

    def json_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


class Shell:
    """Types commands in one folder, within this process."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._monkeypatch, self._capsys = folder, monkeypatch, capsys

    def __call__(self, *arguments: str, stdin: str | bytes = "") -> Outcome:
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        self._monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        self._capsys.readouterr()
        status = main(arguments)
        return Outcome(status, *self._capsys.readouterr())

    def ok(self, *arguments: str, stdin: str | bytes = "") -> Outcome:
        outcome = self(*arguments, stdin=stdin)
        assert outcome.status == 0, outcome.err
        return outcome


@contextmanager
def shell_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Generator[Shell, None, None]:
    """A hand that types commands in a folder."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "path", sys.path[:])  # an application's folder comes first there; not for other tests
    yield Shell(folder, monkeypatch, capsys)
    for name, module in list(sys.modules.items()):  # another test has an `app` of its own
        if (getattr(module, "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]


@pytest.fixture
def kstreams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    with shell_in(tmp_path, monkeypatch, capsys) as shell:
        yield shell
