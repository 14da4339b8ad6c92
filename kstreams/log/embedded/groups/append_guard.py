"""`AppendGuard`: records of a member become visible only while it is in its group.

The check and the append are one act. Who appends holds a shared lock on a file of the member over both; who takes the
member out of the group holds the lock exclusively until the change of the group is visible. So of a process that stood
still for longer than its session nothing lands when it wakes.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kstreams.errors import LogError
from kstreams.log.api import GroupMetadata
from kstreams.log.embedded.catalogue.group_rows import group_version, read_group
from kstreams.log.embedded.disk import open_file
from kstreams.log.embedded.groups.presence import appends_file
from kstreams.log.embedded.resources import LogResources
from kstreams.log.groups.refusals import former_member


class AppendingMemberError(LogError):
    """A member that is to be taken out of its group is in the middle of an append."""


class AppendGuard:
    """The membership for which one producer writes; for one thread.

    Parameters
    ----------
    home : LogResources
    who : GroupMetadata
    """

    def __init__(self, home: LogResources, who: GroupMetadata) -> None:
        self.who = who
        self._home = home
        self._fd = -1
        self._version = -1
        self._is_member = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the member in its group while records become visible.

        Raises
        ------
        FencedError
            When it is out.
        """
        fd = self._opened()
        fcntl.flock(fd, fcntl.LOCK_SH)
        try:
            if not self._is_in_group():
                raise former_member(self.who.group, self.who.member)
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
                self._fd = open_file(appends_file(self._home.folder, self.who.member))
            except FileNotFoundError:
                raise former_member(self.who.group, self.who.member) from None
        return self._fd

    def _is_in_group(self) -> bool:
        catalogue = self._home.catalogue
        version = group_version(catalogue, self.who.group)
        if version != self._version:
            self._is_member = self.who.member in read_group(catalogue, self.who.group).members
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
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise AppendingMemberError(
            f"{member} is in the middle of an append, so it cannot be taken out of its group yet. If its process "
            "stands still, let it go on (SIGCONT) or kill it."
        ) from None
    finally:
        os.close(fd)
