"""`Deletion`: one thing that the reset of an application deletes."""

from __future__ import annotations

from typing import NamedTuple


class Deletion(NamedTuple):
    """A topic, the offsets of a group, a state folder, or a checkpoint.

    Parameters
    ----------
    what : {"topic", "state", "checkpoint", "offsets"}
    name : str
        The name of the topic or group, or where the folder lies.
    """

    what: str
    name: str
