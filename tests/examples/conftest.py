"""A terminal in an empty folder, for running the examples as a reader would."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from kstreams.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"


class Terminal:
    """Runs commands in one folder; a command that fails fails the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "NO_COLOR": "1"}

    def run(self, *command: str, status: int = 0) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False, timeout=280
        )
        assert done.returncode == status, f"{command}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def python(self, example: str, *arguments: str, status: int = 0) -> str:
        return self.run(sys.executable, str(EXAMPLES / example), *arguments, status=status)

    def rows(self, topic: str, *options: str) -> list[dict[str, Any]]:
        """What `kstreams consume` prints; in this process, as there is nothing to see of another."""
        printed = io.StringIO()
        with chdir(self.folder), redirect_stdout(printed):
            assert main(["consume", topic, "--from-beginning", "--until-end", "--json", *options]) == 0
        return [json.loads(line) for line in printed.getvalue().splitlines()]


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def milliseconds(iso: str) -> int:
    return round(datetime.fromisoformat(iso).timestamp() * 1000)
