"""`StepEnds`: the end offsets of the next step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Ability, Log
from kstreams.runtime.spark.coupling import Admission
from kstreams.runtime.spark.io.admission import admitted, split_evenly
from kstreams.runtime.spark.io.time_cuts import OffsetsAfter, TimeCuts, UnreadRecords
from kstreams.runtime.spark.io.upcoming_records import (
    NO_TIME,
    UpcomingFrames,
    UpcomingRecords,
    UpcomingRows,
    are_records,
)

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
        self._positions_and_times: dict[TopicPartition, tuple[int, int]] = {}

    def before(self, records: UpcomingRecords, positions: Positions) -> dict[TopicPartition, int]:
        """Return the greatest valid timestamp (ms) of each partition before its position; -1 if there is none."""
        for source, position in positions.items():
            start, latest_ms = self._positions_and_times.get(source, (self._starts.get(source, 0), NO_TIME))
            times = [span.latest_ms for span in records.spans(source, start, position)]
            self._positions_and_times[source] = position, max([latest_ms, *times])
        return {source: self._positions_and_times[source][1] for source in positions}


Ranges = Mapping[TopicPartition, tuple[int, int]]
Group = tuple[Admission, list[TopicPartition]]
"""Partitions that are cut together."""


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
        self._upcoming_rows: UpcomingRows | None = None
        self._cuts = TimeCuts[int]()

    def next(self, log: Log, start: Positions, end: Positions, limit: int | None, *, bounded: bool) -> Positions:
        """Return the end of the step that begins at `start` and takes at most `limit` records before `end`.

        Parameters
        ----------
        log : Log
        start, end : mapping of TopicPartition to int
            `end` has all partitions. A partition without a start begins at offset 0.
        limit : int or None
            None for no limit. In a home that finds offsets by time, a step may take up to a quarter less.
        bounded : bool
            True if the run ends with its input. Then the order takes the stream times of tasks into account, as on the
            native engine. Otherwise, only the times of buffered records count.
        """
        ranges = _ranges(start, end)
        backlog = {source: stop - first for source, (first, stop) in ranges.items()}
        ends = {source: stop for source, (_, stop) in ranges.items()}
        if limit is None or sum(backlog.values()) <= limit:
            return ends
        groups = self._groups(backlog)
        backlogs = {index: sum(backlog[source] for source in group) for index, (_, group) in enumerate(groups)}
        cut_by_time: dict[int, UnreadRecords] = {}
        for index, share in split_evenly(backlogs, limit).items():
            admission, group = groups[index]
            ranges_of_group: Ranges = {source: ranges[source] for source in group}
            if not admission.by_time or not share:
                ends |= _ends_of_shares(ranges_of_group, share)
            elif share < backlogs[index]:
                cut_by_time[index] = UnreadRecords(ranges_of_group, share)
        return ends | self._ends_by_time(log, groups, cut_by_time, bounded=bounded)

    def _ends_by_time(
        self, log: Log, groups: Sequence[Group], unread: Mapping[int, UnreadRecords], *, bounded: bool
    ) -> dict[TopicPartition, int]:
        """Return the ends in groups of partitions that have more records than the step takes.

        They are found by times where the home finds offsets by time, else by reading the times of records.
        """
        ends: dict[TopicPartition, int] = {}
        ends_of_groups: Mapping[int, Positions] = {}
        if Ability.FRAMES not in log.abilities:
            ends_of_groups = self._cuts.ends(_offsets_after(log), partial(are_records, log), unread)
        for index, (ranges, limit) in unread.items():
            admission, _ = groups[index]
            if index in ends_of_groups:
                ends |= ends_of_groups[index]
            else:
                ends |= self._earliest(log, admission, ranges, limit, bounded=bounded)
        return ends

    def _groups(self, sources: Iterable[TopicPartition]) -> list[Group]:
        """Return the groups of partitions that are cut together."""
        return [(admission, group) for admission in self._admissions for group in _groups(admission, sources)]

    def _earliest(
        self, log: Log, admission: Admission, ranges: Ranges, limit: int, *, bounded: bool
    ) -> dict[TopicPartition, int]:
        """Return the ends of the earliest records of offset ranges, for the partitions that have more records."""
        stream_times: dict[int, int] = {}
        if bounded and admission.across_partitions:
            with self._upcoming(log) as records:
                greatest = self._greatest.before(records, {source: start for source, (start, _) in ranges.items()})
            for source, time_ms in greatest.items():
                stream_times[source.partition] = max(time_ms, stream_times.get(source.partition, time_ms))
        with self._upcoming(log) as records:
            spans = {source: records.spans(source, start, end) for source, (start, end) in ranges.items()}
            return admitted(spans, records.times, limit, stream_times)

    def close(self) -> None:
        """Close the consumer of upcoming records."""
        if self._upcoming_rows is not None:
            self._upcoming_rows.close()
            self._upcoming_rows = None

    def _upcoming(self, log: Log) -> AbstractContextManager[UpcomingRecords]:
        """Open the upcoming records for a block."""
        if Ability.FRAMES in log.abilities:
            return UpcomingFrames(log)
        if self._upcoming_rows is None:
            self._upcoming_rows = UpcomingRows(log)
        return nullcontext(self._upcoming_rows)


def _offsets_after(log: Log) -> OffsetsAfter:
    def offsets(times: Positions) -> Positions:
        with log.admin() as admin:
            return admin.offsets_at_times({source: time_ms + 1 for source, time_ms in times.items()})

    return offsets


def _ranges(start: Positions, end: Positions) -> Ranges:
    """Return the offset range of each partition. A partition without a start begins at offset 0."""
    starts = {source: start.get(source, 0) for source in end}
    return {source: (starts[source], max(starts[source], stop)) for source, stop in end.items()}


def _ends_of_shares(ranges: Ranges, limit: int) -> dict[TopicPartition, int]:
    """Divide a number of records evenly between offset ranges, and return where each part ends."""
    counts = split_evenly({source: stop - start for source, (start, stop) in ranges.items()}, limit)
    return {source: ranges[source][0] + records for source, records in counts.items()}


def _groups(admission: Admission, sources: Iterable[TopicPartition]) -> list[list[TopicPartition]]:
    """Return the groups of partitions that are cut together."""
    groups: dict[int, list[TopicPartition]] = {}
    for source in sources:
        if source.topic in admission.topics:
            groups.setdefault(0 if admission.across_partitions else source.partition, []).append(source)
    return list(groups.values())
