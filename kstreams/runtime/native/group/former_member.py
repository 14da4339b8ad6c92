"""`FormerMember`: removes the member that the last process on a state folder was, if that process was killed.

Over Kafka, a group waits for the session of a member whose process was killed (`session.timeout.ms`, 45 s). The lock on
the state folder proves that the process has ended, so the next process on the folder removes its member.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

from kstreams.errors import KStreamsError
from kstreams.log.api import Admin
from kstreams.os.private import write_private

logger = logging.getLogger(__name__)
_FILE = "member"


class FormerMember:
    """The file of a state folder with the id of the member that uses the folder.

    Parameters
    ----------
    folder : Path
        A state folder that this process has locked.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE

    def remove(self, admin: Admin, group: str) -> None:
        """Remove the former member from its group. If that fails, the group waits for the end of its session."""
        with suppress(FileNotFoundError):
            member = self._path.read_text()
            try:
                admin.remove_member(group, member)
            except KStreamsError as error:
                logger.warning("%s waits for the session of its killed member %s: %s", group, member, error)
            self._path.unlink()

    def replace(self, member: str) -> None:
        """Write the id of the member of this process."""
        write_private(self._path, member.encode())

    def left(self) -> None:
        """Note that the member of this process has left its group."""
        self._path.unlink(missing_ok=True)
