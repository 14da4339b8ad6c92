"""Retries compared with a plain model: whatever fails when, nothing is lost or doubled, and keys keep their order."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.testing import TopologyTestDriver
from tests.support.examples import examples

RETRY = ks.Retry(backoff=100, factor=3, max_delay=500, attempts=4, on=TimeoutError)

Step = tuple[str | None, int] | int
"""A record with its key and the number of its calls that fail, or a time in ms that passes."""

records = st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from([0, 0, 0, 1, 2, 3, 4, 9]))
steps = st.lists(st.one_of(records, st.integers(1, 700)), max_size=40)


@dataclass
class Waiting:
    number: int
    due_ms: int
    failures: int = 0


@dataclass
class Model:
    """What the operator does, with lists: a queue per key, of which the first record has a time."""

    failing_calls: dict[int, int]
    now_ms: int = 0
    queues: dict[object, deque[Waiting]] = field(default_factory=dict)
    forwarded: list[int] = field(default_factory=list)
    parked: list[int] = field(default_factory=list)

    def take(self, key: str | None, number: int) -> None:
        queue = number if key is None else key
        if queue in self.queues:
            self.queues[queue].append(Waiting(number, self.now_ms))
            return
        self.queues[queue] = deque([Waiting(number, self.now_ms)])
        self.call_due(queue)

    def pass_time(self, elapsed_ms: int) -> None:
        self.now_ms += elapsed_ms
        for queue in list(self.queues):
            self.call_due(queue)

    def call_due(self, queue: object) -> None:
        waiting = self.queues[queue]
        while waiting and waiting[0].due_ms <= self.now_ms:
            first = waiting[0]
            if first.failures >= self.failing_calls[first.number]:
                self.forwarded.append(waiting.popleft().number)
                continue
            first.failures += 1
            if first.failures == RETRY.attempts:
                self.parked.append(waiting.popleft().number)
            else:
                first.due_ms = self.now_ms + RETRY.delay_ms(first.failures)
        if not waiting:
            del self.queues[queue]


def until_nothing_waits(script: list[Step], model: Model) -> Iterator[tuple[int, Step]]:
    """The steps with their numbers, and then time that passes."""
    yield from enumerate(script)
    while model.queues:
        yield -1, 500


@settings(max_examples=examples(300), deadline=None)
@given(steps)
def test_each_record_is_forwarded_or_parked_once_when_the_model_says_so(script: list[Step]) -> None:
    numbered = [(number, step) for number, step in enumerate(script) if isinstance(step, tuple)]
    model = Model({number: fails for number, (_, fails) in numbered})
    keys = {number: key for number, (key, _) in numbered}
    calls: Counter[int] = Counter()

    def call(number: int) -> int:
        calls[number] += 1
        if calls[number] <= model.failing_calls[number]:
            raise TimeoutError
        return number

    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=int).map_values(call, retry=RETRY, park="parked").to("out")
    with TopologyTestDriver(builder.build(), start_ms=0) as driver:
        source = driver.create_input_topic("in", key=str, value=int)
        out = driver.create_output_topic("out", key=str, value=int)
        parked = driver.create_output_topic("parked", key=str, value=int)
        forwarded_numbers: list[int] = []
        parked_numbers: list[int] = []
        for number, step in until_nothing_waits(script, model):
            if isinstance(step, tuple):
                source.pipe_input(step[0], number, timestamp=number)
                model.take(step[0], number)
            else:
                driver.advance_wall_clock_time(timedelta(milliseconds=step))
                model.pass_time(step)
            forwarded_numbers += [record.value for record in out.read_records()]
            parked_numbers += [record.value for record in parked.read_records()]
            assert Counter(forwarded_numbers) == Counter(model.forwarded)
            assert Counter(parked_numbers) == Counter(model.parked)
    assert sorted(forwarded_numbers + parked_numbers) == [number for number, _ in numbered]
    for key in ("a", "b", "c"):
        of_key = [number for number in forwarded_numbers if keys[number] == key]
        assert of_key == sorted(of_key)
    assert calls == {number: min(fails + 1, RETRY.attempts) for number, fails in model.failing_calls.items()}
