"""The generated pages of docs/ say what the code says."""

from __future__ import annotations

import subprocess
import sys

from tests.docs.pages import ROOT


def test_generated_pages_are_current() -> None:
    command = [sys.executable, str(ROOT / "tools" / "reference.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, f"write them anew with `make docs`:\n{done.stdout}{done.stderr}"
