"""An application in steps, by the tasks that Spark's workers run, with stores and state in memory: many in a second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from kstreams.config import Config
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.processor.topology.barriers import processing_order
from kstreams.processor.topology.layout import lay_out
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.spark.exchange.blocks import Block
from kstreams.runtime.spark.exchange.merged_blocks import merged
from kstreams.runtime.spark.exchange.reports import raise_first
from kstreams.runtime.spark.io.output_topics import NoTopics
from kstreams.runtime.spark.program import program_of
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.steps import StateVersion, Step, batch_step, end_step
from kstreams.runtime.spark.tasks.local_state import OpenedState
from kstreams.runtime.spark.tasks.task_run import TaskRun
from kstreams.state import open_task_state
from kstreams.state.api import Changes
from tests.spark.written_blocks import split_reports


class Input(NamedTuple):
    """A record of a topic."""

    topic: str
    partition: int
    key: str
    value: str
    time: int


class Output(NamedTuple):
    """A record that was written, in the order in which its task wrote it."""

    topic: str
    partition: int
    key: str | None
    value: str | None
    time: int


class StepsInMemory:
    """The tasks of a topology without circles; each begins every step anew, with what it kept.

    Parameters
    ----------
    topology : Topology
    partitions : mapping of str to int
        Of the topics of the user.
    """

    def __init__(self, topology: Topology, partitions: Mapping[str, int]) -> None:
        config = Config.of({"application.id": "app", "statestore.cache.max.bytes": 0})
        layout = lay_out(topology, "app", partitions)
        settings = SparkSettings(snapshot_every=1_000)
        self._program = program_of(topology, config, settings, layout, partitions, "checkpoint")
        self._kept = {(plan.id.sub_topology, plan.partition): _Kept(plan.sub_topology.stores) for plan in layout.tasks}
        self._order = [number for stage in processing_order(self._program.upstream) for number in sorted(stage)]
        self._offsets: Counter[TopicPartition] = Counter()

    def run(self, steps: Iterable[Sequence[Input]]) -> list[Output]:
        """What the steps put out, and the end of input behind them."""
        number, found = -2, list[Output]()
        for number, step in enumerate(steps):
            found += self._step(Step(batch_step(number)), self._batches(step))
        return found + self._step(Step(end_step(batch_step(number)), end=True), {})

    def _step(self, step: Step, read: Mapping[TopicPartition, Batch]) -> list[Output]:
        blocks: list[Block] = []
        for number in self._order:
            before = list(blocks)
            for partition in range(self._program.tasks[number]):
                blocks += self._task(number, partition, step, read, before)
        topics = self._program.routes.internal
        return [row for block in blocks if block.topic not in topics for row in _outputs(block)]

    def _task(
        self, number: int, partition: int, step: Step, read: Mapping[TopicPartition, Batch], blocks: Sequence[Block]
    ) -> list[Block]:
        sources = [TopicPartition(topic, partition) for topic in self._program.inputs[number]]
        mine = [block for block in blocks if (block.topic, block.partition) in sources]
        feeds = {source: [read[source]] for source in sources if source in read} | merged(mine)
        kept = self._kept[number, partition]
        sub, opened = self._program.sub_topology(number), OpenedState(kept.stores, kept.metadata)
        run = TaskRun(self._program, sub, partition, step, opened, NoTopics())
        written, reports = split_reports(run.outputs(feeds, kept))
        raise_first(reports)
        return list(written)

    def _batches(self, step: Sequence[Input]) -> dict[TopicPartition, Batch]:
        rows: dict[TopicPartition, list[Row]] = {}
        for topic, partition, key, value, time in step:
            rows.setdefault(TopicPartition(topic, partition), []).append(Row(key.encode(), value.encode(), time, ()))
        found = {source: Batch.of_rows(source, mine, self._offsets[source]) for source, mine in rows.items()}
        self._offsets.update({source: len(mine) for source, mine in rows.items()})
        return found


class _Kept:
    """What a task keeps from step to step: in the place of its state files."""

    def __init__(self, stores: Any) -> None:
        self.stores = open_task_state(stores, caching=False)
        self.metadata: dict[str, int] = {}

    def write_changes(
        self, number: int, parent: StateVersion, metadata: Mapping[str, int], changes: Mapping[str, Changes]
    ) -> StateVersion:
        """Keep the changes of a step."""
        self.stores.persist(changes, {})
        self.metadata = dict(metadata)
        return StateVersion(number, bytes(16))


def _outputs(block: Block) -> Iterable[Output]:
    for row in block.content().to_pylist():
        key, value = (None if row[name] is None else row[name].decode() for name in ("key", "value"))
        yield Output(block.topic, block.partition, key, value, row["timestamp"])


def cut_anywhere(inputs: Sequence[Input], cuts: Iterable[int]) -> list[list[Input]]:
    """The records as steps, in the order in which tasks take them; a cut may separate records of one time.

    Examples
    --------
    >>> inputs = [Input("t", 0, "", "", time) for time in (5, 3, 7)] + [Input("t", 1, "", "", time) for time in (4, 5)]
    >>> [[(row.partition, row.time) for row in step] for step in cut_anywhere(inputs, [2])]
    [[(1, 4), (0, 5)], [(0, 3), (1, 5), (0, 7)]]
    """
    order = sorted(_places(inputs))
    ends = sorted({0, *(cut for cut in cuts if cut < len(order)), len(order)})
    return [[inputs[at] for *_, at in order[start:stop]] for start, stop in pairwise(ends)]


def _places(inputs: Sequence[Input]) -> Iterable[tuple[int, int, str, int]]:
    for partition, topic in {(row.partition, row.topic) for row in inputs}:
        mine = [at for at, row in enumerate(inputs) if (row.partition, row.topic) == (partition, topic)]
        reached = accumulate((inputs[at].time for at in mine), max)
        yield from ((time, partition, topic, at) for time, at in zip(reached, mine, strict=True))
