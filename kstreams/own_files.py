"""Checks that the files of `kstreams` are of this distribution, since another one has a package of this name.

If both are installed, files of one replace files of the other; if one is then uninstalled, the other is incomplete.
"""

from __future__ import annotations

import sys

_OWN = "kstreams-dsl"
_OTHER = "kstreams"
_CURE = f"pip uninstall -y {_OTHER} {_OWN}, then pip install --force-reinstall {_OWN}"


def damage() -> str | None:
    """Return a sentence that describes damaged files and the cure; None if the files are of this distribution.

    Examples
    --------
    >>> damage() is None
    True
    """
    package = sys.modules["kstreams"]
    if getattr(package, "DISTRIBUTION", None) == _OWN:
        return None
    if getattr(package, "__file__", None) is None:
        return f"files of {_OWN} are missing, which went with another distribution that has a package kstreams: {_CURE}"
    return _mixed()


def explanation(error: ImportError) -> str | None:
    """Return the sentence for an import error that the other distribution causes; None for any other error."""
    is_ours = (error.name or "").partition(".")[0] == "kstreams"
    return _mixed() if is_ours and _other_version() else None


def require_own() -> None:
    """Raise ImportError if the files are not of this distribution."""
    if sentence := damage():
        raise ImportError(sentence, name="kstreams")


def _mixed() -> str:
    return (
        f"another distribution, {_OTHER} {_other_version() or '(unknown)'}, was installed over {_OWN}: both have a "
        f"package kstreams, and only one of them can be there. For this one: {_CURE}"
    )


def _other_version() -> str | None:
    from importlib.metadata import PackageNotFoundError, version  # a slow import

    try:
        return version(_OTHER)
    except PackageNotFoundError:
        return None
