"""`require_inactive`: refuses changes to a group that has members or a running application."""

from __future__ import annotations

from kstreams.errors import LogError, StateError
from kstreams.log.api import GroupDescription
from kstreams.log.homes import TopicHome


def require_inactive(home: TopicHome, group: GroupDescription, refusal: str) -> None:
    """Raise LogError if a group has members, or if its application runs on this machine.

    A run with `--once` or `--until-end` is no member of the group. It holds a lock, if the home has files on this
    machine.

    Parameters
    ----------
    home : TopicHome
    group : GroupDescription
    refusal : str
        The beginning of the message, which then names what has to be stopped.
    """
    if group.members:
        raise LogError(f"{refusal}: stop its {len(group.members)} members first")
    lock = home.lock_file(group.name)
    if lock is not None and lock.exists():
        from kstreams.os.file_lock import FileLock

        try:
            FileLock(lock, f"the application {group.name!r} of the log {home}").release()
        except StateError as error:
            raise LogError(f"{refusal}: {error}") from None
