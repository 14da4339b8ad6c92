"""`TimeCuts`: the ends of steps in a home that finds offsets by time, so that no record is read to plan a step.

A step that ends in each partition before its first record later than a time takes a prefix of the order of tasks, if no
record before the step is later (`admission.py`). So only the time has to be searched: the latest one up to which there
are at most so many records.

A home takes the marker of a transaction for a record of the time of the commit. Groups of partitions in which a step
would end before a marker, or that cannot be cut at a time for another reason, are read from then on.

Pure logic: a function returns the first offsets after times.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

from kstreams.kernel.batch import TopicPartition

OffsetsAfter = Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int]]
"""Returns the first offset in each partition whose timestamp is later than a time (ms), or the end."""

AreRecords = Callable[[Mapping[TopicPartition, int]], bool]
"""Returns True if there is a record at each of these offsets, not the marker of a transaction."""

Group = TypeVar("Group", bound=Hashable)

ENOUGH = 0.75
"""The part of the limit with which the search ends."""
_TARGET = 0.9
_NO_TIME = -1
_LAST_MS = 1 << 43
"""A time after those of usual records. Steps of later records are planned by reading them."""


class UnreadRecords(NamedTuple):
    """The unread records of partitions that are cut at one time, and how many of them a step may take."""

    ranges: Mapping[TopicPartition, tuple[int, int]]
    limit: int

    def beyond(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the ends of a step that are offsets of unread records or markers."""
        return {source: end for source, end in ends.items() if end < self.ranges[source][1]}


class _Search:
    """The search for the time of one cut. `low` is a time up to which the step may go, `high` is one too late."""

    def __init__(self, backlog: UnreadRecords, low: int, guess: int | None) -> None:
        self._backlog = backlog
        self._low = low
        self._high = _LAST_MS
        self._counts = {low: 0, _LAST_MS: sum(end - start for start, end in backlog.ranges.values())}
        self._guess = guess
        self._rounds = 0
        self.ends: Mapping[TopicPartition, int] = {}

    @property
    def time_ms(self) -> int:
        """The latest time that the step may reach, as far as is known."""
        return self._low

    @property
    def usual_step_ms(self) -> int:
        """The time that a step takes if there are as many records a second as between the bounds."""
        records = self._counts[self._high] - self._counts[self._low]
        return 0 if self._high == _LAST_MS else int((self._high - self._low) * _TARGET * self._backlog.limit / records)

    @property
    def is_over(self) -> bool:
        return self._high - self._low <= 1 or self._counts[self._low] >= ENOUGH * self._backlog.limit

    def next_times(self) -> dict[TopicPartition, int]:
        """Return the time to try, by partition."""
        return dict.fromkeys(self._backlog.ranges, self._next_time())

    def learn(self, time_ms: int, offsets: Mapping[TopicPartition, int]) -> None:
        """Take over the offsets of the records after a time."""
        ranges = self._backlog.ranges
        ends = {source: min(max(offsets[source], start), end) for source, (start, end) in ranges.items()}
        count = sum(end - ranges[source][0] for source, end in ends.items())
        has_later_records_before = any(offsets[source] < start for source, (start, _) in ranges.items())
        self._counts[time_ms] = count
        if count > self._backlog.limit:
            self._high = time_ms
        else:
            self._low = time_ms
            self.ends = ends if count and not has_later_records_before else {}

    def _next_time(self) -> int:
        """Return the guess at first, then a time between the bounds: by the counts, every third time in the middle."""
        self._rounds += 1
        guess, self._guess = self._guess, None
        middle = (self._low + self._high) // 2
        few = self._counts[self._low]
        many = self._counts[self._high]
        if guess is None:
            by_counts = self._low + int((self._high - self._low) * (_TARGET * self._backlog.limit - few) / (many - few))
            guess = middle if self._rounds % 3 == 0 or self._high == _LAST_MS else by_counts
        return min(max(guess, self._low + 1), self._high - 1)


class TimeCuts(Generic[Group]):
    """The cuts of groups of partitions from step to step. The next cut is guessed from the last one."""

    def __init__(self) -> None:
        self._last_times: dict[Group, int] = {}
        self._steps_ms: dict[Group, int] = {}
        self._read = set[Group]()  # the groups that have once not been cut by a time

    def ends(
        self, offsets_after: OffsetsAfter, are_records: AreRecords, backlogs: Mapping[Group, UnreadRecords]
    ) -> dict[Group, Mapping[TopicPartition, int]]:
        """Return the ends of the next step for each group that can be cut by a time.

        Parameters
        ----------
        offsets_after : callable
        are_records : callable
        backlogs : mapping of group to UnreadRecords
            Groups with more records than their limit.

        Examples
        --------
        >>> import numpy as np
        >>> a, b = TopicPartition("a", 0), TopicPartition("b", 0)
        >>> times = {a: np.array([1, 9, 2, 13]), b: np.array([4, 5, 9, 12])}
        >>> def offsets_after(time_by_source):
        ...     return {s: int(np.argmax([*times[s], 1 << 60] > np.int64(time))) for s, time in time_by_source.items()}
        >>> all_partitions = {"all": UnreadRecords({a: (0, 4), b: (0, 4)}, 6)}
        >>> ends = TimeCuts().ends(offsets_after, lambda offsets: True, all_partitions)["all"]
        >>> ends[a], ends[b]  # up to the time 9
        (3, 3)
        """
        searches = {group: self._search(group, backlogs[group]) for group in backlogs.keys() - self._read}
        while unfinished := [search for search in searches.values() if not search.is_over]:
            times = [search.next_times() for search in unfinished]
            offsets = offsets_after({source: time for of_search in times for source, time in of_search.items()})
            for search, of_search in zip(unfinished, times, strict=True):
                search.learn(next(iter(of_search.values())), offsets)
        ends = {group: search.ends for group, search in searches.items() if search.ends}
        ends = {group: of_group for group, of_group in ends.items() if are_records(backlogs[group].beyond(of_group))}
        self._read |= backlogs.keys() - ends.keys()
        before = self._last_times
        self._last_times = {group: searches[group].time_ms for group in ends}
        self._steps_ms = {
            group: time_ms - before[group] if group in before else searches[group].usual_step_ms
            for group, time_ms in self._last_times.items()
        }
        return ends

    def _search(self, group: Group, backlog: UnreadRecords) -> _Search:
        last_ms = self._last_times.get(group, _NO_TIME)
        step_ms = self._steps_ms.get(group, 0)
        return _Search(backlog, last_ms, last_ms + step_ms if step_ms else None)
