"""Checks that a changelog still holds what was written to it: a store is never restored with less in silence.

Each commit keeps in the task metadata where the changelogs ended. A store that never wrote anything has no such offset,
or 0, and an empty changelog is right for it; a changelog that ends before that offset has lost records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kstreams.errors import StateError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Admin

_PREFIX = "changelog:"


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
    """The entries of the task metadata that say where changelogs end, by store.

    Examples
    --------
    >>> encode_changelog_ends({"counts": 7}), decode_changelog_ends({"changelog:counts": 7, "stream_time": 3})
    ({'changelog:counts': 7}, {'counts': 7})
    """
    return {f"{_PREFIX}{store}": end for store, end in ends.items()}


def decode_changelog_ends(metadata: Mapping[str, int]) -> dict[str, int]:
    """What `encode_changelog_ends` put into task metadata."""
    return {name.removeprefix(_PREFIX): end for name, end in metadata.items() if name.startswith(_PREFIX)}


def check_changelog(changelog: Changelog, admin: Admin) -> None:
    """Raise where records are missing.

    The beginning of a changelog that is only compacted never moves: if it is behind what the store holds, records were
    deleted. Retention moves that of windows; what it deletes has expired.

    Raises
    ------
    StateError
        When records are gone that the store or the committed offsets depend on; says what to do.
    """
    source = changelog.source
    last_offset = changelog.known or 0
    begin = admin.beginning_offsets([source])[source]
    end = admin.end_offsets([source])[source]
    written = max(last_offset, changelog.written)
    if end < written:
        raise _lost(changelog, f"ends at offset {end}, but was written up to {written}")
    if begin > last_offset and admin.describe_topic(source.topic).config["cleanup.policy"] == "compact":
        raise _lost(changelog, f"begins at offset {begin}, but is never cut at its beginning")


def _lost(changelog: Changelog, reason: str) -> StateError:
    return StateError(
        f"The changelog {changelog.source} of the store {changelog.store} {reason}: it was deleted, emptied or belongs "
        "to another log, and the store cannot be made whole. Put the topic back from a copy of the log, or run once "
        "with --reset to process the input again from its beginning."
    )
