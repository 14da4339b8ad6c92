"""`Presence` and `LifeSigns`: a member's file shows that its process is there, and when it last gave a sign of life.

The process holds a lock on the file, which the system frees at its end: so a death is seen at once. A process that
hangs keeps the lock; its signs stay out, and whoever looks counts for how long. It counts by its own looks, so that a
machine that slept does not take all the others for dead when it wakes.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kstreams.forks import in_child
from kstreams.log.embedded.boot import boot_id
from kstreams.log.embedded.disk import create_file, open_file
from kstreams.log.groups.group import Member
from kstreams.private import make_folder

_SIGN = struct.Struct("<q16s")


def presence_file(log: Path, member: str) -> Path:
    """The file of a member."""
    return log / "members" / member


def appends_file(log: Path, member: str) -> Path:
    """The file that is locked, shared, while records of a member become visible, and exclusively to take it out."""
    return log / "members" / f"{member}.appends"


def remove_files(log: Path, member: str) -> None:
    """Remove the files of a member that is out of its group."""
    presence_file(log, member).unlink(missing_ok=True)
    appends_file(log, member).unlink(missing_ok=True)


class Presence:
    """A member's own files, the first of them locked until `close` or the end of the process.

    Parameters
    ----------
    log : Path
        The log's folder.
    member : str
    uptime_ms : int
    """

    def __init__(self, log: Path, member: str, uptime_ms: int) -> None:
        path = presence_file(log, member)
        make_folder(path.parent)
        os.close(create_file(appends_file(log, member)))
        self._log = log
        self._member = member
        self._fd = create_file(path)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        in_child(self, lambda copy: copy.close(leaves=False))
        self.give_sign(uptime_ms)

    def give_sign(self, uptime_ms: int) -> None:
        """Show that the member lives."""
        os.pwrite(self._fd, _SIGN.pack(uptime_ms, boot_id()), 0)

    def close(self, *, leaves: bool) -> None:
        """Free the lock; who leaves takes the file along."""
        if self._fd >= 0:
            if leaves:
                remove_files(self._log, self._member)
            os.close(self._fd)
        self._fd = -1


class LastSign(NamedTuple):
    """What a member's file says; `at_ms` is an uptime of this boot, None when the member is of an earlier one."""

    at_ms: int | None
    has_process: bool


def read_sign(path: Path) -> LastSign:
    """The last sign of a member; without a file there is no process."""
    try:
        fd = open_file(path)
    except FileNotFoundError:
        return LastSign(None, has_process=False)
    try:
        raw = os.pread(fd, _SIGN.size, 0)
        at_ms = _uptime_of(raw)
        with suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return LastSign(at_ms, has_process=False)
        return LastSign(at_ms, has_process=True)
    finally:
        os.close(fd)


def _uptime_of(sign: bytes) -> int | None:
    if len(sign) != _SIGN.size:
        return None
    at_ms, boot = _SIGN.unpack(sign)
    return at_ms if boot == boot_id() else None


class _Silence(NamedTuple):
    """A sign, and for how long the observer has seen no other."""

    at_ms: int | None
    for_ms: int


class LifeSigns:
    """What one observer has seen of the others.

    Parameters
    ----------
    log : Path
        The log's folder.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._seen: dict[str, _Silence] = {}
        self._looked_ms: int | None = None

    def dead(self, members: Iterable[Member], uptime_ms: int) -> list[tuple[str, str]]:
        """The members that are dead, each with the reason.

        A static member without a process may be started again within its session time-out.
        """
        passed = uptime_ms - (self._looked_ms or uptime_ms)
        self._looked_ms = uptime_ms
        found = []
        seen = {}
        for member in members:
            sign = read_sign(presence_file(self._log, member.id))
            if not sign.has_process and (member.instance is None or sign.at_ms is None):
                found.append((member.id, "its process has ended"))
                continue
            seen[member.id] = self._counted(member, sign, passed)
            silent_ms = seen[member.id].for_ms
            if not sign.has_process and sign.at_ms is not None:
                silent_ms = uptime_ms - sign.at_ms
            if silent_ms >= member.session_ms:
                found.append((member.id, f"no sign of life for {silent_ms} ms (session.timeout.ms)"))
        self._seen = seen
        return found

    def _counted(self, member: Member, sign: LastSign, passed: int) -> _Silence:
        before = self._seen.get(member.id)
        if before is None or before.at_ms != sign.at_ms:
            return _Silence(sign.at_ms, 0)
        # A gap between two looks says that the observer itself stood still: it proves nothing of the others.
        return _Silence(sign.at_ms, before.for_ms + min(max(passed, 0), _most_ms(member)))


def _most_ms(member: Member) -> int:
    """How much of a gap between two looks counts as silence."""
    return max(member.session_ms // 4, 1)
