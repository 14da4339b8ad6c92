"""Files of a group's members: heartbeats by which other members see that it lives, and the lock of its appends.

The process of a member locks its heartbeat file, and the system frees the lock when the process ends: other members see
its death at once. A process that hangs keeps the lock, but writes no heartbeats. Observers count the time without a
heartbeat by their own checks, so that after a sleep of the machine they do not take all others for dead.

Records of a member become visible only while it is in its group. A member holds a shared lock while it checks this and
appends; a process that removes the member from the group holds the lock exclusively until the removal is visible. So a
process that was suspended for longer than its session timeout appends nothing when it resumes.
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
from kstreams.log.embedded.catalogue.catalogue import group_version, read_group
from kstreams.log.embedded.disk import boot_id, create_file, open_file
from kstreams.log.embedded.resources import LogResources
from kstreams.log.groups.group import Member, former_member
from kstreams.os.file_lock import try_lock
from kstreams.os.forks import in_child
from kstreams.os.private import make_folder
from kstreams.os.stopped_holders import lock

_HEARTBEAT = struct.Struct("<q16s")


def heartbeat_file(log: Path, member: str) -> Path:
    """Return the file with the heartbeats of a member, which its process locks."""
    return log / "members" / member


def append_lock_file(log: Path, member: str) -> Path:
    """Return the file that is locked while a member appends (shared), or is removed from its group (exclusively)."""
    return log / "members" / f"{member}.appends"


def remove_files(log: Path, member: str) -> None:
    """Remove the files of a former member."""
    heartbeat_file(log, member).unlink(missing_ok=True)
    append_lock_file(log, member).unlink(missing_ok=True)


class MemberFile:
    """A member's own files; the heartbeat file is locked until `close` or the end of the process.

    Parameters
    ----------
    log : Path
        The log's folder.
    member : str
    uptime_ms : int
    """

    def __init__(self, log: Path, member: str, uptime_ms: int) -> None:
        path = heartbeat_file(log, member)
        make_folder(path.parent)
        os.close(create_file(append_lock_file(log, member)))
        self._log = log
        self._member = member
        self._fd = create_file(path)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        in_child(self, lambda copy: copy.close(leaves=False))
        self.beat(uptime_ms)

    def beat(self, uptime_ms: int) -> None:
        """Write a heartbeat."""
        os.pwrite(self._fd, _HEARTBEAT.pack(uptime_ms, boot_id()), 0)

    def close(self, *, leaves: bool) -> None:
        """Free the lock; a member that leaves removes its files."""
        if self._fd >= 0:
            if leaves:
                remove_files(self._log, self._member)
            os.close(self._fd)
        self._fd = -1


class LastHeartbeat(NamedTuple):
    """The last heartbeat of a member.

    Parameters
    ----------
    at_ms : int or None
        The machine's uptime; None if the heartbeat is from an earlier boot.
    has_process : bool
        Whether the process of the member is running.
    """

    at_ms: int | None
    has_process: bool


def read_heartbeat(path: Path) -> LastHeartbeat:
    """Read the last heartbeat of a member; without a file there is no process."""
    try:
        fd = open_file(path)
    except FileNotFoundError:
        return LastHeartbeat(None, has_process=False)
    try:
        raw = os.pread(fd, _HEARTBEAT.size, 0)
        at_ms = _uptime_in(raw)
        return LastHeartbeat(at_ms, has_process=not try_lock(fd, shared=True))
    finally:
        os.close(fd)


class SessionMonitor:
    """Checks the sessions of other members, for one observer.

    Parameters
    ----------
    log : Path
        The log's folder.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._silences: dict[str, _Silence] = {}
        self._checked_ms: int | None = None

    def dead(self, members: Iterable[Member], uptime_ms: int) -> list[tuple[str, str]]:
        """Return the members whose session has ended, with the reason.

        A static member without a process may be started again within its session timeout.
        """
        passed = uptime_ms - (self._checked_ms or uptime_ms)
        self._checked_ms = uptime_ms
        dead = []
        silences = {}
        for member in members:
            heartbeat = read_heartbeat(heartbeat_file(self._log, member.id))
            if not heartbeat.has_process and (member.instance is None or heartbeat.at_ms is None):
                dead.append((member.id, "its process has ended"))
                continue
            silences[member.id] = self._silence(member, heartbeat, passed)
            silent_ms = silences[member.id].for_ms
            if not heartbeat.has_process and heartbeat.at_ms is not None:
                silent_ms = uptime_ms - heartbeat.at_ms
            if silent_ms >= member.session_ms:
                dead.append((member.id, f"no heartbeat for {silent_ms} ms (session.timeout.ms)"))
        self._silences = silences
        return dead

    def _silence(self, member: Member, heartbeat: LastHeartbeat, passed: int) -> _Silence:
        before = self._silences.get(member.id)
        if before is None or before.at_ms != heartbeat.at_ms:
            return _Silence(heartbeat.at_ms, 0)
        # A gap between two checks means that the observer was suspended: it says nothing about the others.
        return _Silence(heartbeat.at_ms, before.for_ms + min(max(passed, 0), _max_step_ms(member)))


def _uptime_in(heartbeat: bytes) -> int | None:
    if len(heartbeat) != _HEARTBEAT.size:
        return None
    at_ms, boot = _HEARTBEAT.unpack(heartbeat)
    return at_ms if boot == boot_id() else None


class _Silence(NamedTuple):
    """A heartbeat, and the time for which the observer has seen no later one."""

    at_ms: int | None
    for_ms: int


def _max_step_ms(member: Member) -> int:
    """Return how much of the time between two checks counts as silence."""
    return max(member.session_ms // 4, 1)


class AppendingMemberError(LogError):
    """Error when a member that is to be removed from its group is in the middle of an append."""


class AppendGuard:
    """The membership for which one producer appends; for one thread.

    Parameters
    ----------
    home : LogResources
    member : GroupMetadata
    """

    def __init__(self, home: LogResources, member: GroupMetadata) -> None:
        self.member = member
        self._home = home
        self._file = append_lock_file(home.folder, member.member)
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
        lock(fd, self._file, shared=True)
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
                self._fd = open_file(self._file)
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
def without_appends(log: Path, member: str) -> Iterator[None]:
    """Keep a member from appending.

    Raises
    ------
    AppendingMemberError
        When the member is in the middle of an append.
    """
    try:
        fd = open_file(append_lock_file(log, member))
    except FileNotFoundError:  # without the file, no producer appends for the member
        yield
        return
    try:
        if not try_lock(fd):
            raise AppendingMemberError(
                f"{member} is in the middle of an append, so it cannot be removed from its group yet. If its process "
                "is stopped, let it go on (SIGCONT) or kill it."
            )
        yield
    finally:
        os.close(fd)
