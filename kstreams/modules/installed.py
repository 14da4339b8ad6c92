"""The folder of the package kstreams, as it is installed here, and whether a file is installed or the user's own."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

PACKAGE = Path(__file__).parent.parent
_INSTALLED = tuple(
    str(Path(folder).resolve())
    for folder in {*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix, str(PACKAGE)}
)
_SITES = frozenset({"site-packages", "dist-packages"})


def is_installed(file: str | Path) -> bool:
    """Whether a file is part of Python, of an installed package or of kstreams: not the user's own.

    Examples
    --------
    >>> import json
    >>> is_installed(json.__file__), is_installed("app.py")
    (True, False)
    """
    path = Path(file).resolve()
    return str(path).startswith(_INSTALLED) or not _SITES.isdisjoint(path.parts)
