"""Errors for a database that RocksDB cannot read or write: rocksdict raises plain exceptions with RocksDB's words."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from kstreams.errors import CorruptStateError, StateError

_LOST = errno.ENOENT, errno.EIO, errno.ENOTDIR, errno.EISDIR  # what other errors name is well again when there is room


def unreadable(path: Path, error: Exception) -> StateError:
    """The error for a database that RocksDB cannot read or write: because of its files, or of the machine."""
    reason = str(error).rstrip(". ")
    if "Too many open files" in reason:
        return StateError(f"RocksDB at {path} cannot be opened: {reason}. Raise their number with `ulimit -n`.")
    if _is_damage(error, reason):
        return damaged(path, reason)
    return StateError(f"RocksDB at {path} cannot be read or written: {reason}. Mend that, then start again.")


def damaged(path: Path, reason: str) -> CorruptStateError:
    """The error for damaged files of a database."""
    return CorruptStateError(f"the state stores in {path} are damaged: {reason}", path)


def _is_damage(error: Exception, reason: str) -> bool:
    """Whether files are to blame; rocksdict raises plain exceptions that carry RocksDB's words."""
    if type(error) is not Exception:
        return False
    is_of_system = reason.startswith("IO error") or "(os error " in reason
    return not is_of_system or any(os.strerror(code) in reason for code in _LOST)
