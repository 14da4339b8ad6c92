"""Whether the files of the package `kstreams` are ours: another distribution has a package of this name.

Who installs both has the files of one over those of the other, and who then uninstalls one has neither whole.
"""

from __future__ import annotations

import sys

_OWN = "kstreams-dsl"
_OTHER = "kstreams"
_CURE = f"pip uninstall -y {_OTHER} {_OWN}, then pip install --force-reinstall {_OWN}"


def damage() -> str | None:
    """What is wrong with the files, and the cure: a sentence, or None where they are ours.

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
    """The sentence for an error that comes from files of the other distribution among ours; None for any other."""
    is_ours = (error.name or "").partition(".")[0] == "kstreams"
    return _mixed() if is_ours and _other_version() else None


def require_own() -> None:
    """Raise ImportError with the sentence unless the files are ours."""
    if sentence := damage():
        raise ImportError(sentence, name="kstreams")


def _mixed() -> str:
    return (
        f"another distribution, {_OTHER} {_other_version() or '(unknown)'}, was installed over {_OWN}: both have a "
        f"package kstreams, and only one of them can be there. For this one: {_CURE}"
    )


def _other_version() -> str | None:
    from importlib.metadata import PackageNotFoundError, version  # takes a while

    try:
        return version(_OTHER)
    except PackageNotFoundError:
        return None
