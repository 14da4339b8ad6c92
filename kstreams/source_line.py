"""Where in the user's code an operator was declared."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PACKAGE = str(Path(__file__).resolve().parent) + os.sep


def declared_at() -> str:
    """`file:line` of the innermost frame outside of kstreams; the file relative to the working folder if below it."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    file = frame.f_code.co_filename
    working_folder = os.getcwd() + os.sep
    return f"{file.removeprefix(working_folder)}:{frame.f_lineno}"
