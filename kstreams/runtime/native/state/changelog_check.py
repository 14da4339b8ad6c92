"""Whether a changelog still holds what was written to it: counts that begin again are refused, never begun in silence.

Every commit notes with the input offsets where the changelogs ended. A store that never wrote anything has no note, or
one of 0, so an empty changelog is right for it; an end before the note means that records are gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kstreams.batch import TopicPartition
from kstreams.errors import StateError
from kstreams.log.api import Admin

_NOTE = "changelog:"


class Changelog(NamedTuple):
    """The changelog of one store of a task.

    Parameters
    ----------
    store : str
    source : TopicPartition
    known : int or None
        Up to where the store on disk holds it; None when it holds nothing.
    written : int
        Where it ended when input offsets were committed last; 0 when nothing was.
    """

    store: str
    source: TopicPartition
    known: int | None
    written: int


def encode_changelog_ends(ends: Mapping[str, int]) -> dict[str, int]:
    """The part of a task's memo that tells where its changelogs end, by store.

    Examples
    --------
    >>> encode_changelog_ends({"counts": 7}), decode_changelog_ends({"changelog:counts": 7, "stream_time": 3})
    ({'changelog:counts': 7}, {'counts': 7})
    """
    return {f"{_NOTE}{store}": end for store, end in ends.items()}


def decode_changelog_ends(memo: Mapping[str, int]) -> dict[str, int]:
    """What `encode_changelog_ends` put into a memo."""
    return {name.removeprefix(_NOTE): end for name, end in memo.items() if name.startswith(_NOTE)}


def check_changelog(changelog: Changelog, admin: Admin) -> None:
    """Raise where records are missing.

    A changelog that is only compacted never moves its beginning: where it lies behind what the store holds, somebody
    has deleted records. Retention moves that of windows; what it deletes has expired.

    Raises
    ------
    StateError
        When records that the store or the committed offsets stand for are gone; says how to go on.
    """
    source, known = changelog.source, changelog.known or 0
    begin, end = admin.beginning_offsets([source])[source], admin.end_offsets([source])[source]
    written = max(known, changelog.written)
    if end < written:
        raise _lost(changelog, f"ends at offset {end}, but was written up to {written}")
    if begin > known and admin.describe_topic(source.topic).config["cleanup.policy"] == "compact":
        raise _lost(changelog, f"begins at offset {begin}, but is never cut at its beginning")


def _lost(changelog: Changelog, what: str) -> StateError:
    return StateError(
        f"The changelog {changelog.source} of the store {changelog.store} {what}: it was deleted, emptied or belongs "
        "to another log, and the store cannot be made whole. Put the topic back from a copy of the log, or run once "
        "with --reset to process the input again from its beginning."
    )
