"""Global tables are loaded up to where their topics end at the start, whatever the topics went through before."""

from __future__ import annotations

from typing import Any

import kstreams as ks
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.api import Consumer, Log
from kstreams.runtime.native.lifecycle import State
from tests.native.world import World

TEXTS = {"key": str, "value": str}


class SlowLog:
    """A log whose consumers give what there is at the second poll only, as a remote one may, and note each time-out."""

    def __init__(self, log: Log) -> None:
        self._log, self.timeouts = log, list[float]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def consumer(self, config: Any = None) -> Any:
        return SlowConsumer(self._log.consumer(config), self.timeouts)


class SlowConsumer:
    def __init__(self, consumer: Consumer, timeouts: list[float]) -> None:
        self._consumer, self._timeouts, self._polls = consumer, timeouts, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)

    def __enter__(self) -> SlowConsumer:
        return self

    def __exit__(self, *exc: object) -> None:
        self._consumer.close()

    def poll(self, timeout: float = 0.0, max_records: int = 10_000) -> list[Batch]:
        self._polls += 1
        self._timeouts.append(timeout)
        return self._consumer.poll(timeout, max_records) if self._polls > 1 else []


def names() -> ks.Topology:
    builder = ks.StreamsBuilder()
    table = builder.global_table("names", **TEXTS, materialized="names")
    builder.stream("in", **TEXTS).join(table, lambda value, name: name, key_selector=lambda key, value: key).to(
        "out", **TEXTS
    )
    return builder.build()


def test_a_load_waits_for_records_instead_of_asking_again_at_once(world: World) -> None:
    world.create("names")
    world.create("in")
    world.write("names", [("a", "Ada", 1)])
    with world.log() as log:
        slow = SlowLog(log)
        with ks.KafkaStreams(names(), {**world.settings, "poll.ms": 50}, log=slow) as streams:  # type: ignore[arg-type]
            streams.start()
            while streams.state is State.REBALANCING:
                streams.wait(0.01)
            assert streams.store("names").get("a").value == "Ada"
    assert slow.timeouts[:2] == [0.05, 0.05]


def test_a_topic_whose_records_were_all_deleted_is_an_empty_table(world: World) -> None:
    world.create("names")
    world.create("in")
    world.write("names", [("a", "Ada", 1)])
    with world.log() as log, log.admin() as admin:
        admin.delete_records({TopicPartition("names", 0): 1})
    world.write("in", [("a", "", 2)])
    world.run(names())
    assert "out" not in world.topics() or world.rows("out") == []


def test_a_topic_that_ends_with_an_aborted_transaction_is_loaded(world: World) -> None:
    world.create("names")
    world.create("in")
    world.write("names", [("a", "Ada", 1)])
    with world.log() as log, log.producer({"transactional.id": "t"}) as producer:
        producer.begin_transaction()
        producer.send("names", b"a", b"Bea", timestamp=2)
        producer.flush()
        producer.abort_transaction()
    world.write("in", [("a", "", 2)])
    world.run(names())
    assert [row.value for row in world.rows("out")] == ["Ada"]
