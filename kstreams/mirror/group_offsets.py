"""`GroupOffsets`: translates the committed offsets of groups, and commits them in the target.

A group is left alone while it has members in the target. An offset that the group has committed in the target itself is
never moved back. An offset of the mirror follows the source in both directions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

from kstreams.errors import CommitFailedError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Log, OffsetAndMetadata
from kstreams.mirror.copied_topics import create_internal_topic
from kstreams.mirror.settings import MirrorSettings

_MARK = "kstreams-mirror"
Translate = Callable[[TopicPartition, int], int | None]
"""Returns the offset in the target for an offset of a partition of the source. See `OffsetSyncs.translate`."""


class Checkpoint(NamedTuple):
    """The offset of a group in a partition of the target. MirrorMaker 2: `Checkpoint`."""

    group: str
    target: TopicPartition
    upstream_offset: int
    offset: int

    def key(self) -> bytes:
        """Encode the key in the format of MirrorMaker 2."""
        return text_of_struct(self.group, self.target.topic) + struct.pack(">i", self.target.partition)

    def value(self) -> bytes:
        """Encode the value in the format of MirrorMaker 2, version 0."""
        return struct.pack(">hqq", 0, self.upstream_offset, self.offset) + text_of_struct("")


def text_of_struct(*texts: str) -> bytes:
    """Encode texts as fields of a struct of Kafka's protocol.

    Examples
    --------
    >>> text_of_struct("A", "")
    b'\\x00\\x01A\\x00\\x00'
    """
    encoded_texts = [text.encode() for text in texts]
    return b"".join(struct.pack(">h", len(encoded)) + encoded for encoded in encoded_texts)


class GroupOffsets:
    """The groups of the source.

    Parameters
    ----------
    source, target : Log
    settings : MirrorSettings
    """

    def __init__(self, source: Log, target: Log, settings: MirrorSettings) -> None:
        self._source_admin = source.admin()
        self._target_admin = target.admin()
        self._producer = target.producer({"delivery.report.only.error": True})
        self._settings = settings
        create_internal_topic(self._target_admin, settings.policy.checkpoints_topic)

    def sync(self, copies: Mapping[TopicPartition, TopicPartition], translate: Translate) -> list[Checkpoint]:
        """Translate the offsets of all groups in these partitions of the source. Return the offsets that were moved.

        Parameters
        ----------
        copies : mapping of TopicPartition to TopicPartition
            The partitions of the target by those of the source.
        translate : callable
        """
        groups = [group for group in self._source_admin.groups() if self._settings.translates(group)]
        if not groups or not copies:
            return []
        descriptions = self._target_admin.describe_groups(groups)
        moved = [
            checkpoint
            for group in groups
            if not descriptions[group].members
            for checkpoint in self._sync_group(group, copies, translate)
        ]
        for checkpoint in moved:
            self._producer.send(self._settings.policy.checkpoints_topic, checkpoint.key(), checkpoint.value())
        self._producer.flush()
        return moved

    def close(self) -> None:
        """Release the clients."""
        self._producer.close()
        self._source_admin.close()
        self._target_admin.close()

    def _sync_group(
        self, group: str, copies: Mapping[TopicPartition, TopicPartition], translate: Translate
    ) -> list[Checkpoint]:
        committed = self._source_admin.committed(group, list(copies))
        if not committed:
            return []
        present = self._target_admin.committed(group, [copies[source] for source in committed])
        checkpoints = []
        for source, at in committed.items():
            target = copies[source]
            offset = translate(source, at.offset)
            if offset is not None and _is_move(present.get(target), at.offset, offset):
                checkpoints.append(Checkpoint(group, target, at.offset, offset))
        if not checkpoints:
            return []
        try:
            self._target_admin.commit(
                group,
                {move.target: OffsetAndMetadata(move.offset, _metadata(move.upstream_offset)) for move in checkpoints},
            )
        except CommitFailedError:  # the group has got members
            return []
        return checkpoints


def _metadata(upstream_offset: int) -> str:
    return f"{_MARK}:{upstream_offset}"


def _is_move(present: OffsetAndMetadata | None, upstream_offset: int, offset: int) -> bool:
    """Return True if the committed offset of a group in the target is to be replaced.

    A lower offset replaces only an offset of the mirror, and only if the group has gone back in the source.

    Examples
    --------
    >>> _is_move(None, 5, 5), _is_move(OffsetAndMetadata(7), 5, 5), _is_move(OffsetAndMetadata(3), 5, 5)
    (True, False, True)
    >>> ours = OffsetAndMetadata(7, _metadata(7))
    >>> _is_move(ours, 5, 5), _is_move(ours, 7, 6)
    (True, False)
    """
    if present is None or offset > present.offset:
        return True
    mark, _, upstream = present.metadata.partition(":")
    return offset < present.offset and mark == _MARK and upstream.isdecimal() and int(upstream) > upstream_offset
