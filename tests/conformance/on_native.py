"""Runs a recorded case on the native runtime: a home of topics, stream thread, RocksDB, commits; one record at a time.

The recordings come from a driver that takes records in the order in which they are piped and commits after each. So the
thread is stepped by hand: a record is written to its topic, the thread works until it has processed all that is there,
and commits.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any

from kstreams.config import Config
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.log import home_of
from kstreams.log.api import Consumer, Producer
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.native.runtime_context import RuntimeContext, open_context
from kstreams.runtime.native.thread.stream_thread import StreamThread
from kstreams.serdes import serde_of
from kstreams.state import store_kinds
from kstreams.testing.driver import StoreViews
from tests.conformance.moved import start_ms
from tests.conformance.recorded import Case, Rows, Stores, final_tables, replay, tasks_of, wanted
from tests.native.stepped import one_thread

MOST_COMMITS = 100
MOST_ROUNDS = 3_000  # without any progress: each waits for records, on Kafka
UPDATES_COUNTED = {"pipeline-1-10", "pipeline-1-16"}
"""Here an aggregation counts the updates that a record cache behind a repartition topic lets through: how many there
are depends on the commits, so that only the run without the cache can be compared."""


def differs(case: Case, cached: bool = True, servers: str | None = None) -> bool:
    """Whether the native runtime puts out or keeps anything but what was recorded, with or without its record cache.

    The topics are those of a Kafka cluster, which has none yet, or of a new embedded log.

    Every row in its order; final tables only where a record cache lies behind a repartition topic: the driver commits,
    and so empties the cache, after each record of that topic, a runtime after all of them.
    """
    if cached and case["name"] in UPDATES_COUNTED:
        return False
    config: dict[str, Any] = {"application.id": "app", **case.get("config", {})}
    if not cached:
        config["statestore.cache.max.bytes"] = 0
    view = final_tables if cached and tasks_of(case) > 1 else replay().by_step_and_topic
    rows, stores = run_case_native(replay().Application(case, config), case, config, servers)
    wanted_rows, wanted_stores = wanted(case, cached=cached)
    return bool(view(rows) != view(wanted_rows) or _sorted(stores, wanted_stores) != _sorted(wanted_stores))


def _sorted(stores: Stores, named: Iterable[str] | None = None) -> Stores:
    return {name: replay().sort_rows(stores[name]) for name in (stores if named is None else named)}


def run_case_native(
    application: Any, case: Case, config: dict[str, Any], servers: str | None = None
) -> tuple[Rows, Stores]:
    """The output rows of one case, and what its named stores hold in the end.

    Parameters
    ----------
    application : object
        The case's topology (`builder`) and the types of its topics (`inputs`, `outputs`), as the replay makes it.
    case : mapping
        The recorded case.
    config : mapping
        Settings of the application.
    servers : str or None
        The Kafka cluster with its topics; an embedded log unless given.
    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as resources:
        home = {"log.dir": f"{folder}/log", "poll.ms": 0} if servers is None else {"bootstrap.servers": servers}
        settings = Config.of({**config, **home, "state.dir": f"{folder}/state"})
        log = resources.enter_context(home_of(settings).open(settings))
        producer = resources.enter_context(log.producer())
        admin = resources.enter_context(log.admin())
        for topic in application.inputs:
            admin.create_topic(topic)
        clock = ManualClock(start_ms(case))
        topology = application.builder.build()
        context = open_context(topology, settings, clock, log, lambda _: None, resources)
        thread = one_thread(context, resources)
        reader = resources.enter_context(log.consumer())
        reader.assign([TopicPartition(topic, 0) for topic in application.outputs])
        rows = _feed(case, application, context, thread, producer, reader)
        return rows, _contents(application, topology, context, thread)


def _contents(application: Any, topology: Topology, context: RuntimeContext, thread: StreamThread) -> Stores:
    live = dict(context.topology.global_tables.stores)
    for task in thread.tasks:
        live |= task.state.stores
    views = Views(StoreViews(topology.stores, live))
    return {name: replay().contents(views, name, kind) for name, kind in application.stores.items() if name in live}


class Views:
    """Stores as the replay asks a driver for them."""

    def __init__(self, stores: StoreViews) -> None:
        self.get_versioned_store = self.get_session_store = stores.any
        self.get_timestamped_key_value_store = self.get_timestamped_window_store = stores.any
        self.get_key_value_store = lambda name: stores.seen_as(
            name, store_kinds.KEY_VALUE, store_kinds.TIMESTAMPED_KEY_VALUE
        )


def _feed(
    case: Case, application: Any, context: RuntimeContext, thread: StreamThread, producer: Producer, reader: Consumer
) -> Rows:
    rows: Rows = []
    for step, item in enumerate(case["input"]):
        if "advance_ms" in item:
            context.environment.clock.advance(item["advance_ms"])  # type: ignore[attr-defined]
        else:
            _write(item, application.inputs[item["topic"]], producer)
        context.topology.global_tables.load()
        _work(thread, context)
        rows += _read(step, application.outputs, reader)
    return rows


def _work(thread: StreamThread, context: RuntimeContext) -> None:
    """Until nothing is left to do: what a commit makes visible in repartition topics is input again."""
    for _ in range(MOST_COMMITS):
        thread.round()
        _catch_up(thread, context)
        thread.commit()
        if not _behind(thread, context):
            return
    raise AssertionError(f"the topology still feeds itself after {MOST_COMMITS} commits")


def _catch_up(thread: StreamThread, context: RuntimeContext) -> None:
    """Process all that is there, however long it takes to come here; dropped records count as processed by a commit."""
    rounds = 0
    while thread.is_busy or _behind(thread, context):
        if not thread.is_busy:
            thread.commit()
        thread.round()
        rounds = 0 if thread.is_busy else rounds + 1
        assert rounds < MOST_ROUNDS, f"not processed: {_behind(thread, context)}"


def _behind(thread: StreamThread, context: RuntimeContext) -> list[TopicPartition]:
    """The inputs of which there is more than what was processed."""
    processed = {source: offset for task in thread.tasks for source, offset in task.next_offsets.items()}
    ends = context.environment.admin.end_offsets(processed)
    return [source for source, offset in processed.items() if offset < ends[source]]


def _write(item: dict[str, Any], types: dict[str, Any], producer: Producer) -> None:
    key, value = (
        None if item[part] is None else serde_of(types[part]).serialize(item[part]) for part in ("key", "value")
    )
    headers = [(name, value.encode()) for name, value in item.get("headers", [])]
    producer.send(item["topic"], key, value, timestamp=item["ts"], headers=headers, partition=0)
    producer.flush()


def _read(step: int, outputs: dict[str, dict[str, Any]], reader: Consumer) -> Rows:
    rows = []
    for batch in _new(reader):
        types = outputs[batch.source.topic]
        columns = serde_of(types["key"]).decode_rows(batch.keys), serde_of(types["value"]).decode_rows(batch.values)
        headers = ([[n, None if v is None else v.decode()] for n, v in row] for row in batch.header_rows())
        for key, value, timestamp, named in zip(*columns, batch.timestamps.to_pylist(), headers, strict=True):
            rows.append([step, batch.source.topic, key, value, timestamp, named])
    return rows


def _new(reader: Consumer) -> Iterator[Batch]:
    """All that was written since it was asked last."""
    ends = reader.end_offsets(reader.assignment())
    while any(reader.position(source) < end for source, end in ends.items()):
        yield from reader.poll(0.1)
