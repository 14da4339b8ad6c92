"""`StepEnds`: the end offsets of the next step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Ability, Log
from kstreams.runtime.spark.coupling import Admission
from kstreams.runtime.spark.io.admission import admitted, end_of_moment, split_evenly
from kstreams.runtime.spark.io.upcoming.frames import NO_TIME, UpcomingFrames, UpcomingRecords
from kstreams.runtime.spark.io.upcoming.rows import UpcomingRows

Positions = Mapping[TopicPartition, int]


class GreatestTimes:
    """The greatest timestamps of partitions before growing positions. Each record is read only once.

    Parameters
    ----------
    starts : mapping of TopicPartition to int
        The first offsets of partitions that are not read from their beginning.
    """

    def __init__(self, starts: Positions) -> None:
        self._starts = dict(starts)
        self._known: dict[TopicPartition, tuple[int, int]] = {}

    def before(self, ahead: UpcomingRecords, positions: Positions) -> dict[TopicPartition, int]:
        """Return the greatest valid timestamp (ms) of each partition before its position; -1 if there is none."""
        for source, position in positions.items():
            at, latest_ms = self._known.get(source, (self._starts.get(source, 0), NO_TIME))
            times = [span.latest_ms for span in ahead.spans(source, at, position)]
            self._known[source] = position, max([latest_ms, *times])
        return {source: self._known[source][1] for source in positions}


Ranges = Mapping[TopicPartition, tuple[int, int]]


class StepEnds:
    """The ends of steps. Partitions of one group are cut together, by time if possible; groups get equal shares.

    Parameters
    ----------
    admissions : sequence of Admission
        Each topic is in exactly one admission.
    starts : mapping of TopicPartition to int
        The first offsets of partitions that are not read from their beginning.
    """

    def __init__(self, admissions: Sequence[Admission], starts: Positions) -> None:
        self._admissions = admissions
        self._greatest = GreatestTimes(starts)
        self._read: UpcomingRows | None = None

    def next(self, log: Log, start: Positions, end: Positions, limit: int | None, *, bounded: bool) -> Positions:
        """Return the end of the step that begins at `start` and takes at most `limit` records before `end`.

        Parameters
        ----------
        log : Log
        start, end : mapping of TopicPartition to int
            `end` has all partitions. A partition without a start begins at offset 0.
        limit : int or None
            None for no limit.
        bounded : bool
            True if the run ends with its input. Then the order takes the stream times of tasks into account, as on the
            native engine. Otherwise, only the times of buffered records count.
        """
        ranges = _ranges(start, end)
        backlog = {source: stop - at for source, (at, stop) in ranges.items()}
        ends = {source: stop for source, (_, stop) in ranges.items()}
        if limit is None or sum(backlog.values()) <= limit:
            return ends
        groups = self._coupled(backlog)
        backlogs = {at: sum(backlog[source] for source in group) for at, (_, group) in enumerate(groups)}
        for at, share in split_evenly(backlogs, limit).items():
            admission, group = groups[at]
            parts = {source: ranges[source] for source in group}
            if not admission.by_time or not share:
                ends |= _ends_of_shares(parts, share)
            elif share < backlogs[at]:
                ends |= self._earliest(log, admission, parts, share, bounded=bounded)
        return ends

    def _coupled(self, sources: Iterable[TopicPartition]) -> list[tuple[Admission, list[TopicPartition]]]:
        """Return the groups of partitions that are cut together."""
        return [(admission, group) for admission in self._admissions for group in _groups(admission, sources)]

    def _earliest(
        self, log: Log, admission: Admission, ranges: Ranges, limit: int, *, bounded: bool
    ) -> dict[TopicPartition, int]:
        """Return the ends of the earliest records of offset ranges, for the partitions that have more records."""
        stream_times: dict[int, int] = {}
        if bounded and admission.across_partitions:
            with self._looking(log) as ahead:
                greatest = self._greatest.before(ahead, {source: start for source, (start, _) in ranges.items()})
            for source, time_ms in greatest.items():
                stream_times[source.partition] = max(time_ms, stream_times.get(source.partition, time_ms))
        with self._looking(log) as ahead:
            spans = {source: ahead.spans(source, *between) for source, between in ranges.items()}
            ends = admitted(spans, ahead.times, limit, stream_times)
        if not admission.whole_moments:
            return ends
        with self._looking(log) as ahead:
            return _with_moment(ahead, ranges, ends, stream_times)

    def close(self) -> None:
        """Close the consumer of upcoming records."""
        if self._read is not None:
            self._read.close()
            self._read = None

    def _looking(self, log: Log) -> AbstractContextManager[UpcomingRecords]:
        if Ability.FRAMES in log.abilities:
            return UpcomingFrames(log)
        if self._read is None:
            self._read = UpcomingRows(log)
        return nullcontext(self._read)


def _ranges(start: Positions, end: Positions) -> Ranges:
    """Return the offset range of each partition. A partition without a start begins at offset 0."""
    starts = {source: start.get(source, 0) for source in end}
    return {source: (starts[source], max(starts[source], stop)) for source, stop in end.items()}


def _ends_of_shares(ranges: Ranges, limit: int) -> dict[TopicPartition, int]:
    """Divide a number of records evenly between offset ranges, and return where each part ends."""
    counts = split_evenly({source: stop - start for source, (start, stop) in ranges.items()}, limit)
    return {source: ranges[source][0] + records for source, records in counts.items()}


def _with_moment(
    ahead: UpcomingRecords, ranges: Ranges, ends: Positions, stream_times: Mapping[int, int]
) -> dict[TopicPartition, int]:
    """Return the end of the step if it takes all records of its last time.

    Older records that follow such a record in their partition are included: tasks take them at the same stream time.
    """
    all_spans = [ahead.spans(source, start, ends.get(source, stop)) for source, (start, stop) in ranges.items()]
    moment_ms = max((span.latest_ms for spans in all_spans for span in spans), default=NO_TIME)
    ends_of_step: dict[TopicPartition, int] = {}
    for source, end in ends.items():
        later: int | None = end
        if stream_times.get(source.partition, NO_TIME) <= moment_ms:
            later = end_of_moment(source, ahead.spans(source, end, ranges[source][1]), ahead.times, moment_ms)
        if later is not None:
            ends_of_step[source] = later
    return ends_of_step


def _groups(admission: Admission, sources: Iterable[TopicPartition]) -> list[list[TopicPartition]]:
    """Return the groups of partitions that are cut together."""
    groups: dict[int, list[TopicPartition]] = {}
    for source in sources:
        if source.topic in admission.topics:
            groups.setdefault(0 if admission.across_partitions else source.partition, []).append(source)
    return list(groups.values())
