"""What is not to be changed while somebody reads for a group."""

from __future__ import annotations

from kstreams.errors import LogError, StateError
from kstreams.log.api import GroupDescription
from kstreams.log.homes import TopicHome


def require_inactive(home: TopicHome, group: GroupDescription, refusal: str) -> None:
    """Raise LogError while somebody reads for a group.

    Members are seen at every home. A run that ends with its input has none: it holds a lock, where the home keeps files
    on this machine.

    Parameters
    ----------
    home : TopicHome
    group : GroupDescription
    refusal : str
        Begins the sentence, which goes on with who is to be stopped.
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
