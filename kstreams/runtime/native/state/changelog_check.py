"""`check_changelog`: checks that a changelog has lost no records, before a store is restored from it.

Each commit writes the end offsets of changelogs to the task metadata. A store that never wrote a record has no such
offset, or 0, and its changelog may be empty. A changelog that ends before its offset has lost records.
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
        The offset up to which the store on disk has the changelog. None if it has nothing.
    written : int
        The end offset at the last commit. 0 if there was none.
    """

    store: str
    source: TopicPartition
    known: int | None
    written: int


def encode_changelog_ends(ends: Mapping[str, int]) -> dict[str, int]:
    """Return the entries of the task metadata for the end offsets of changelogs, by store.

    Examples
    --------
    >>> encode_changelog_ends({"counts": 7}), decode_changelog_ends({"changelog:counts": 7, "stream_time": 3})
    ({'changelog:counts': 7}, {'counts': 7})
    """
    return {f"{_PREFIX}{store}": end for store, end in ends.items()}


def decode_changelog_ends(metadata: Mapping[str, int]) -> dict[str, int]:
    """Return the end offsets that `encode_changelog_ends` has encoded."""
    return {name.removeprefix(_PREFIX): end for name, end in metadata.items() if name.startswith(_PREFIX)}


def check_changelog(changelog: Changelog, admin: Admin) -> None:
    """Raise StateError if records are missing.

    Compaction never moves the beginning of a changelog. If it begins after the offset of the store, records were
    deleted. Retention moves the beginning of changelogs of windows, and deletes expired rows only.

    Raises
    ------
    StateError
        If records are missing on which the store or the committed offsets depend. The message says what to do.
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
