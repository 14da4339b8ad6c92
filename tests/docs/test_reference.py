"""The generated pages and pictures of docs/ are what the code writes."""

from __future__ import annotations

import subprocess
import sys

from tests.docs.pages import ROOT


def test_generated_pages_are_current() -> None:
    command = [sys.executable, str(ROOT / "tools" / "reference.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, f"write them anew with `make docs`:\n{done.stdout}{done.stderr}"


def test_pictures_are_current() -> None:
    command = [sys.executable, str(ROOT / "tools" / "pictures.py"), "--check"]
    drawn = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert drawn.returncode == 0, f"draw them anew with `make docs`:\n{drawn.stdout}"
