"""`AppendGuard`: records of a member become visible only while it is in its group.

The check and the append are one act. Who appends holds a shared lock on a file of the member over both; who takes the
member out of the group holds the lock exclusively until the change of the group is visible. So of a process that stood
still for longer than its session nothing lands when it wakes.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kstreams.errors import LogError
from kstreams.log.api import GroupMetadata
from kstreams.log.embedded.catalogue.group_rows import group_version, read_group
from kstreams.log.embedded.disk import boot_id, create_file, open_file
from kstreams.log.embedded.resources import LogResources
from kstreams.log.groups.group import Member, former_member
from kstreams.os.file_lock import try_lock
from kstreams.os.forks import in_child
from kstreams.os.private import make_folder

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
        return LastSign(at_ms, has_process=not try_lock(fd, shared=True))
    finally:
        os.close(fd)


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


def _uptime_of(sign: bytes) -> int | None:
    if len(sign) != _SIGN.size:
        return None
    at_ms, boot = _SIGN.unpack(sign)
    return at_ms if boot == boot_id() else None


class _Silence(NamedTuple):
    """A sign, and for how long the observer has seen no other."""

    at_ms: int | None
    for_ms: int


def _most_ms(member: Member) -> int:
    """How much of a gap between two looks counts as silence."""
    return max(member.session_ms // 4, 1)


class AppendingMemberError(LogError):
    """A member that is to be taken out of its group is in the middle of an append."""


class AppendGuard:
    """The membership for which one producer writes; for one thread.

    Parameters
    ----------
    home : LogResources
    member : GroupMetadata
    """

    def __init__(self, home: LogResources, member: GroupMetadata) -> None:
        self.member = member
        self._home = home
        self._fd = -1
        self._version = -1
        self._is_member = False

    @contextmanager
    def appending(self) -> Iterator[None]:
        """Keep the member in its group while its records become visible.

        Raises
        ------
        FencedError
            When the member is no longer in its group.
        """
        fd = self._opened()
        fcntl.flock(fd, fcntl.LOCK_SH)
        try:
            if not self._is_in_group():
                raise former_member(self.member.group, self.member.member)
            yield
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Release the file."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _opened(self) -> int:
        # Each guard has a descriptor of its own: a lock belongs to the descriptor, not to the thread.
        if self._fd < 0:
            try:
                self._fd = open_file(appends_file(self._home.folder, self.member.member))
            except FileNotFoundError:
                raise former_member(self.member.group, self.member.member) from None
        return self._fd

    def _is_in_group(self) -> bool:
        catalogue = self._home.catalogue
        version = group_version(catalogue, self.member.group)
        if version != self._version:
            self._is_member = self.member.member in read_group(catalogue, self.member.group).members
            self._version = version
        return self._is_member


@contextmanager
def no_appends(log: Path, member: str) -> Iterator[None]:
    """Keep records of a member from becoming visible.

    Raises
    ------
    AppendingMemberError
        When some are about to.
    """
    try:
        fd = open_file(appends_file(log, member))
    except FileNotFoundError:  # without it nothing is written for the member
        yield
        return
    try:
        if not try_lock(fd):
            raise AppendingMemberError(
                f"{member} is in the middle of an append, so it cannot be taken out of its group yet. If its process "
                "is stopped, let it go on (SIGCONT) or kill it."
            )
        yield
    finally:
        os.close(fd)
