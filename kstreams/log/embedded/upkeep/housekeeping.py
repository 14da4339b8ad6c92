"""Housekeeping of topics: rolls segments, compacts, applies retention, and deletes rows of committed transactions.

Retention removes segments by age, by size or on request: always whole segments, never the active one.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
from collections import deque
from contextlib import closing, suppress
from typing import NamedTuple

from kstreams.errors import LogError, UnknownTopicError
from kstreams.log.embedded.catalogue.catalogue import Catalogue, Topic
from kstreams.log.embedded.catalogue.transactions import delete_committed, transaction_state
from kstreams.log.embedded.disk import create_file
from kstreams.log.embedded.resources import LogResources, stable_end
from kstreams.log.embedded.segments.appender import Appender
from kstreams.log.embedded.segments.index import index_path, last_entry
from kstreams.log.embedded.segments.partition import START_SUFFIX, Partition, PartitionHead
from kstreams.log.embedded.segments.segment import Segment, segment_path
from kstreams.log.embedded.segments.topic_settings import TopicSettings
from kstreams.log.embedded.upkeep.compaction import compact

_ROUND_MS = 5 * 60 * 1000  # Kafka's log.retention.check.interval.ms
_logger = logging.getLogger("kstreams.log")


class CleaningResult(NamedTuple):
    """The segments and bytes that the cleaning of a topic has freed."""

    topic: str
    segments: int
    bytes: int


class Housekeeper:
    """The cleaner of all partitions every five minutes, one at a time, including those without new records.

    Idle threads call `clean_next`; the processes of a log share the rounds.

    Parameters
    ----------
    home : LogResources
    """

    def __init__(self, home: LogResources) -> None:
        self._home = home
        self._mutex = threading.Lock()
        self._due: deque[tuple[Topic, int]] = deque()
        self._next_ms: int | None = None  # uptime at which to check again whether a round is due

    def clean_next(self) -> bool:
        """Clean one partition; return False if none is due, or another thread is cleaning."""
        if not self._mutex.acquire(blocking=False):
            return False
        try:
            if not self._due:
                self._start_round()
            if not self._due:
                return False
            self._clean(*self._due.popleft())
        except Exception as error:  # an error must not end the idle thread
            _logger.error("Housekeeping of %s failed: %s", self._home.folder, error)
            return bool(self._due)
        finally:
            self._mutex.release()
        return True

    def _clean(self, topic: Topic, number: int) -> None:
        with suppress(UnknownTopicError):  # it was deleted meanwhile
            clean_partition(self._home, topic, number, TopicSettings.of(topic.config))

    def _start_round(self) -> None:
        now_ms = self._home.clock.uptime_ms()
        catalogue = self._home.catalogue
        if self._next_ms is not None and self._next_ms - _ROUND_MS <= now_ms < self._next_ms:
            return
        self._next_ms = now_ms + _ROUND_MS
        if _claims_round(catalogue, now_ms):
            delete_committed(catalogue)
            topics = catalogue.topics().values()
            self._due.extend((topic, number) for topic in topics for number in range(topic.partitions))


def _claims_round(catalogue: Catalogue, now_ms: int) -> bool:
    """Return whether a round is due, and claim it for this process; the first call only sets the time."""
    with catalogue.write() as database:
        row = database.execute("SELECT value FROM marks WHERE name = 'cleaned'").fetchone()
        # A time of an earlier boot is later than now: then a round is due.
        is_due = row is None or not now_ms - _ROUND_MS < row[0] <= now_ms
        if is_due:
            sql = "INSERT INTO marks VALUES ('cleaned', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
            database.execute(sql, (now_ms,))
    return is_due and row is not None


def clean_topic(home: LogResources, topic: Topic, *, eager: bool = False, roll: bool = False) -> CleaningResult:
    """Clean every partition of a topic.

    Parameters
    ----------
    eager : bool
        Compact even if few bytes can be freed; otherwise by Kafka's `min.cleanable.dirty.ratio`.
    roll : bool
        Complete the active segments first, so that they are cleaned too.
    """
    settings = TopicSettings.of(topic.config)
    before = _size(home, topic)
    for number in range(topic.partitions):
        clean_partition(home, topic, number, settings, eager=eager, roll=roll)
    delete_committed(home.catalogue)
    after = _size(home, topic)
    return CleaningResult(topic.name, before.segments - after.segments, before.bytes - after.bytes)


def clean_partition(
    home: LogResources, topic: Topic, number: int, settings: TopicSettings, *, eager: bool = False, roll: bool = False
) -> None:
    """Clean one partition, unless another process is cleaning it."""
    partition = home.partition(topic, number)
    appender = Appender(partition, settings.limits, home.clock, home.durability, on_roll=lambda: None)
    with closing(appender), suppress(FileNotFoundError):
        appender.roll(now=roll or is_expired(partition.head(), settings, home.clock.wall_ms()))
        if settings.delete:
            apply_retention(partition, settings, home.clock.wall_ms())
        if settings.compact:
            _compact(home, topic, partition, settings, eager)


def _size(home: LogResources, topic: Topic) -> CleaningResult:
    sizes = []
    for number in range(topic.partitions):
        with closing(home.partition(topic, number)) as partition, suppress(FileNotFoundError):
            sizes += [segment_path(partition.folder, base).stat().st_size for base in partition.segments()]
    return CleaningResult(topic.name, len(sizes), sum(sizes))


def _compact(home: LogResources, topic: Topic, partition: Partition, settings: TopicSettings, eager: bool) -> None:
    now_ms = home.clock.wall_ms()
    uptime_ms = home.clock.uptime_ms()
    stable = stable_end(home, topic, partition.source.partition, partition.head().end_offset)
    compact(
        partition,
        settings,
        stable,
        lambda number: transaction_state(home.catalogue, number, uptime_ms),
        now_ms,
        eager=eager,
    )


def apply_retention(partition: Partition, settings: TopicSettings, now_ms: int) -> None:
    """Remove segments beyond `retention.ms` and `retention.bytes`; the log then starts at a segment's first offset."""
    head = partition.head()
    inactive = [base for base in partition.segments() if base < head.segment]
    expired = _expired(partition, inactive, settings, now_ms)
    start = [*inactive, head.segment][max(expired, _surplus(partition, inactive, head, settings))]
    if start > head.start_offset:
        move_start(partition, start)


def is_expired(head: PartitionHead, settings: TopicSettings, now_ms: int) -> bool:
    """Return whether all records of the active segment are too old, so that it should be rolled."""
    if not settings.delete or settings.retention_ms < 0 or settings.retention_by_record:
        return False
    return head.position > 0 and head.max_timestamp < now_ms - settings.retention_ms


def move_start(partition: Partition, offset: int) -> None:
    """Delete the records before `offset`; LogError for an offset after the end."""
    with partition.locked():
        head = partition.head_locked()
        if offset > head.end_offset:
            raise LogError(f"{partition.source} ends at offset {head.end_offset}: nothing before {offset} to delete.")
        if offset <= head.start_offset:
            return
        # The marker file keeps the start in case the head is lost; readers use the head.
        create_mark(partition, offset)
        partition.publish(head._replace(start_offset=offset))
        drop_before(partition, head, offset)


def create_mark(partition: Partition, offset: int) -> None:
    """Store the start of the log in the name of an empty file."""
    old = list(partition.folder.glob(f"*{START_SUFFIX}"))
    os.close(create_file(partition.folder / f"{offset:020d}{START_SUFFIX}"))
    for path in old:
        path.unlink()


def drop_before(partition: Partition, head: PartitionHead, offset: int) -> None:
    """Remove the inactive segments without records at or after `offset`, the oldest first."""
    bases = [base for base in partition.segments() if base <= head.segment]
    for base, next_base in itertools.pairwise(bases):
        if next_base > offset:
            break
        path = segment_path(partition.folder, base)
        index_path(path).unlink(missing_ok=True)
        path.unlink()


def greatest_timestamp(partition: Partition, base: int) -> int:
    """Return the greatest timestamp in an inactive segment."""
    segment = Segment(segment_path(partition.folder, base), partition.source)
    segment.map_all()
    entry = last_entry(segment)
    times = [header.max_timestamp for _, header in segment.valid_frames(entry.position, entry.offset) if header.records]
    return max([entry.max_before, *times])


def _expired(partition: Partition, inactive: list[int], settings: TopicSettings, now_ms: int) -> int:
    if settings.retention_ms < 0:
        return 0
    times = [greatest_timestamp(partition, base) for base in inactive]
    if settings.retention_by_record:
        # When an old year is replayed, its windows are in use: their changelog must not be deleted.
        now_ms = min(now_ms, max(times, default=now_ms))
    return next((count for count, time in enumerate(times) if time >= now_ms - settings.retention_ms), len(times))


def _surplus(partition: Partition, inactive: list[int], head: PartitionHead, settings: TopicSettings) -> int:
    if settings.retention_bytes < 0:
        return 0
    sizes = [segment_path(partition.folder, base).stat().st_size for base in inactive]
    surplus = sum(sizes) + head.position - settings.retention_bytes
    count = 0
    while count < len(sizes) and surplus >= sizes[count]:
        surplus -= sizes[count]
        count += 1
    return count
