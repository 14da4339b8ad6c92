"""Runs a topology twice, in columns and record by record, over the same batches; keeps what could tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from kstreams.config import Config
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.processor.context.application import Application
from kstreams.processor.context.encoded_rows import EncodedRows
from kstreams.processor.task.columns.plan import ColumnPlan, plan_regions
from kstreams.processor.task.task import Task, TaskResources
from kstreams.processor.topology.topology import Topology
from kstreams.state import open_task_state

ALWAYS, NEVER = 0, 10**9


@dataclass
class Seen:
    """Everything of a run that anybody could look at."""

    outputs: dict[str, list[Any]] = field(default_factory=dict)
    changelogs: list[Any] = field(default_factory=list)
    stores: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, int] = field(default_factory=dict)
    dropped: dict[Any, int] = field(default_factory=dict)

    def send(self, topic: str, rows: EncodedRows, partitions: object) -> None:
        names = [[]] * len(rows.keys) if rows.headers is None else rows.headers.to_pylist()
        columns = (column.to_pylist() for column in (rows.keys, rows.values, rows.timestamps))
        self.outputs.setdefault(topic, []).extend(zip(*columns, names, strict=True))

    def partitions(self, topic: str) -> int:
        return 1

    def merges(self, topic: str) -> bool:
        return False

    def has_ranks(self, topic: str) -> bool:
        return False

    def logged(self, store: str, rows: list[Any]) -> list[Any]:
        """The rows that change something: what came and went between two commits needs no tombstone."""
        known = {key for changes in self.changelogs for key, value, _ in changes.get(store, ()) if value is not None}
        return [row for row in rows if row[1] is not None or row[0] in known]

    def refused(self, topic: str, rows: EncodedRows) -> dict[int, Any]:
        return {}


def listed(changes: Any) -> list[Any]:
    return list(zip(changes.keys.to_pylist(), changes.values.to_pylist(), changes.timestamps.to_pylist(), strict=True))


def run(
    topology: Topology,
    batches: Sequence[Sequence[Row]],
    *,
    columns: bool,
    commits: Sequence[bool] = (),
    settings: Mapping[str, Any] | None = None,
) -> Seen:
    """Process batches of the topic "in"; commit after those for which `commits` says so, and at the end."""
    (part,) = topology.sub_topologies
    seen, state = Seen(), open_task_state(part.stores)
    least = {"columns.min.rows": ALWAYS if columns else NEVER}
    config = Config.of({"application.id": "test", **least, **(settings or {})})
    task = Task(part, 0, Application.of(config, ManualClock()), TaskResources(state, seen))
    offset = 0
    for at, rows in enumerate(batches):
        batch = Batch.of_rows(TopicPartition("in", 0), rows, offset)
        task.process(task.stamp(batch))
        task.report_skipped()
        offset += len(rows)
        if at < len(commits) and commits[at]:
            commit(task, state, seen)
    commit(task, state, seen)
    task.end_of_input()
    seen.stores = {name: sorted(listed(found), key=repr) for name, found in state.snapshot().items()}
    seen.metadata, seen.dropped = task.metadata(), dict(task.dropped)
    return seen


def commit(task: Task, state: Any, seen: Seen) -> None:
    task.flush()
    changes = state.changes(task.stream_time)
    # One record per key: in which order the keys come, a changelog does not say.
    seen.changelogs.append(
        {name: seen.logged(name, sorted(listed(found), key=repr)) for name, found in changes.items()}
    )
    state.persist(changes, dict.fromkeys(changes, 0))


def cut(rows: Sequence[Row], at: Sequence[int]) -> list[list[Row]]:
    """Rows in pieces that end at these places."""
    places = [0, *sorted({place % (len(rows) + 1) for place in at}), len(rows)]
    return [list(rows[start:end]) for start, end in pairwise(places) if end > start]


def reason(topology: Topology) -> str | None:
    """Why the topology is not run in columns; None when it is."""
    (part,) = topology.sub_topologies
    (planned,) = plan_regions(part).values()
    return None if isinstance(planned, ColumnPlan) else planned


def assert_same(build: Callable[[], Topology], batches: Sequence[Sequence[Row]], commits: Sequence[bool] = ()) -> Seen:
    """There is a region, and both paths show the same; returns what."""
    assert reason(build()) is None
    return assert_same_if_columns(build, batches, commits)


def assert_same_if_columns(
    build: Callable[[], Topology], batches: Sequence[Sequence[Row]], commits: Sequence[bool] = ()
) -> Seen:
    """Both paths show the same, whether there is a region or not."""
    in_columns = run(build(), batches, columns=True, commits=commits)
    by_record = run(build(), batches, columns=False, commits=commits)
    assert in_columns == by_record
    return by_record
