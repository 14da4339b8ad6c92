"""Steps that end at a time found in the log are prefixes of the order in which tasks take records."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.spark.io.time_cuts import TimeCuts, UnreadRecords

pytestmark = pytest.mark.spark

Times = Mapping[TopicPartition, list[int]]
Offsets = Mapping[TopicPartition, int]


def offsets_after(times: Times):
    """What a home finds: the first record in the whole partition that is later than a time."""

    def first(later_than: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {
            source: next((offset for offset, time in enumerate(times[source]) if time > limit), len(times[source]))
            for source, limit in later_than.items()
        }

    return first


def no_markers(offsets: Offsets) -> bool:
    return True


def order(times: Times, start: Offsets) -> list[tuple[int, int, int, str, int]]:
    """The order of tasks from these positions on, as (stream time, partition, reached, topic, offset)."""
    stream_times: dict[int, int] = {}
    for source, offset in start.items():
        latest = max(times[source][:offset], default=-1)
        stream_times[source.partition] = max(latest, stream_times.get(source.partition, -1))
    places = []
    for (topic, partition), of_source in times.items():
        first = start[TopicPartition(topic, partition)]
        for offset in range(first, len(of_source)):
            reached = max(of_source[first : offset + 1])
            places.append((max(stream_times[partition], reached), partition, reached, topic, offset))
    return sorted(places)


def drawn_times(draw: random.Random) -> dict[TopicPartition, list[int]]:
    """Partitions of different spans, with jitter, ties and records far ahead."""
    sources = [TopicPartition(topic, partition) for topic in "ab" for partition in range(draw.randint(1, 3))]
    times = {}
    for source in sources:
        start, pace = draw.choice([0, 1_000]), draw.choice([0, 1, 10])
        count = draw.randint(0, 60)
        times[source] = [
            start + pace * i + draw.randint(0, 1 + 3 * pace) + 500 * (draw.random() < 0.03) for i in range(count)
        ]
    return times


@pytest.mark.parametrize("seed", range(150))
def test_each_step_is_a_prefix_of_the_order_of_tasks(seed: int) -> None:
    draw = random.Random(seed)
    times = drawn_times(draw)
    limit = draw.randint(1, 40)
    position = dict.fromkeys(times, 0)
    cuts = TimeCuts[str]()
    while sum(len(times[source]) - offset for source, offset in position.items()) > limit:
        ranges = {source: (position[source], len(of_source)) for source, of_source in times.items()}
        found = cuts.ends(offsets_after(times), no_markers, {"all": UnreadRecords(ranges, limit)})
        if "all" not in found:  # a step that the engine plans by reading records, such as of one time
            return
        ends = found["all"]
        taken = sorted((s.topic, s.partition, offset) for s in times for offset in range(position[s], ends[s]))
        assert 0 < len(taken) <= limit
        expected = [(topic, partition, offset) for _, partition, _, topic, offset in order(times, position)]
        assert sorted(expected[: len(taken)]) == taken
        position = dict(ends)


def test_most_steps_of_a_steady_input_are_nearly_full_and_found_with_few_requests() -> None:
    sources = [TopicPartition("a", partition) for partition in range(4)]
    times = {source: [10 * n + source.partition for n in range(3_000)] for source in sources}
    requests = []
    search = offsets_after(times)

    def counted(later_than: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        requests.append(later_than)
        return search(later_than)

    cuts = TimeCuts[str]()
    position = dict.fromkeys(sources, 0)
    requests_of_steps = []
    for _ in range(8):
        requests.clear()
        ranges = {source: (position[source], 3_000) for source in sources}
        ends = cuts.ends(counted, no_markers, {"all": UnreadRecords(ranges, 1_000)})["all"]
        assert 750 <= sum(ends[source] - position[source] for source in sources) <= 1_000
        position = dict(ends)
        requests_of_steps.append(len(requests))
    assert max(requests_of_steps[1:]) <= 3
    assert requests_of_steps[0] <= 45


def test_where_a_step_would_end_before_a_marker_of_a_transaction_times_are_not_looked_up_again() -> None:
    source = TopicPartition("a", 0)
    times = {source: [10 * n for n in range(3_000)]}
    asked = []

    def markers(offsets: Offsets) -> bool:
        asked.append(dict(offsets))
        return False

    cuts = TimeCuts[str]()
    for _ in range(2):
        assert cuts.ends(offsets_after(times), markers, {"all": UnreadRecords({source: (0, 3_000)}, 1_000)}) == {}
    assert len(asked) == 1
