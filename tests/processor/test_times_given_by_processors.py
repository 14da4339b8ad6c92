"""Times that user code gives: milliseconds or aware datetimes. All else is the fault of its record, in words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kstreams as ks
from kstreams.errors import LogError, ProcessingError
from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log
from kstreams.record import ValueAndTimestamp, Window, Windowed
from kstreams.testing import TopologyTestDriver

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_MS = 1_767_268_800_000
GOOD = [NOON, NOON_MS, np.int64(NOON_MS)]
BAD = [1767268800.5, float(NOON_MS), str(NOON_MS), True, None, NOON.replace(tzinfo=None), NOON.isoformat()]
SAID = r"failed on record in-0@0: (TypeError|ValueError): .*( is not a time: pass| has no time zone: give it one)"

TEXTS = {"key": str, "value": str}
DAY = 86_400_000
STORES = {
    "window": ks.Stores.window("s", retention=DAY, size=10, **TEXTS),
    "timestamped window": ks.Stores.timestamped_window("s", retention=DAY, size=10, **TEXTS),
    "timestamped": ks.Stores.timestamped_key_value("s", **TEXTS),
    "session": ks.Stores.session("s", retention=DAY, **TEXTS),
    "versioned": ks.Stores.versioned("s", history_retention=DAY, **TEXTS),
}
WRITES: dict[str, tuple[str, Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "window start": ("window", lambda s, t: s.put("k", "v", t), lambda s: s.get("k", NOON)),
    "start of a timestamped window": (
        "timestamped window",
        lambda s, t: s.put("k", ValueAndTimestamp("v", 5), t),
        lambda s: s.get("k", NOON_MS)[0],
    ),
    "time in a timestamped window": (
        "timestamped window",
        lambda s, t: s.put("k", ValueAndTimestamp("v", t), 5),
        lambda s: {NOON_MS: "v"}[s.get("k", 5)[1]],
    ),
    "time of a value": (
        "timestamped",
        lambda s, t: s.put("k", ValueAndTimestamp("v", t)),
        lambda s: {NOON_MS: "v"}[s.get("k").timestamp],
    ),
    "end of a session": (
        "session",
        lambda s, t: s.put(Windowed("k", Window(5, t)), "v"),
        lambda s: s.fetch_session("k", 5, NOON),
    ),
    "time of a version": ("versioned", lambda s, t: s.put("k", "v", t), lambda s: s.get("k", NOON).value),
}


def processed(act: Callable[[Any, Any], None], *, store: str | None = None) -> list[ks.Record[str, str]]:
    """What comes out of a processor that does `act(context, store)` for one record."""

    class Acting(ks.Processor[str, str, str, str]):
        def init(self, context: Any) -> None:
            self.context, self.store = context, None if store is None else context.get_state_store("s")

        def process(self, record: ks.Record[str, str]) -> None:
            act(self.context, self.store)

    builder = ks.StreamsBuilder()
    if store is not None:
        builder.add_state_store(STORES[store])
    stores = [] if store is None else ["s"]
    builder.stream("in", **TEXTS).process(Acting, stores=stores, **TEXTS).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in", **TEXTS).pipe_input("k", "v", 5)
        return driver.create_output_topic("out", **TEXTS).read_records()


@pytest.mark.parametrize("time", GOOD, ids=repr)
@pytest.mark.parametrize(("store", "write", "read"), WRITES.values(), ids=WRITES)
def test_stores_take_times(store: str, write: Any, read: Any, time: Any) -> None:
    seen = []

    def act(_: Any, kept: Any) -> None:
        write(kept, time)
        seen.append(read(kept))

    processed(act, store=store)
    assert seen == ["v"]


@pytest.mark.parametrize("time", BAD, ids=repr)
@pytest.mark.parametrize(("store", "write", "read"), WRITES.values(), ids=WRITES)
def test_stores_refuse_what_is_no_time(store: str, write: Any, read: Any, time: Any) -> None:
    with pytest.raises(ProcessingError, match=SAID):
        processed(lambda _, kept: write(kept, time), store=store)


def test_a_timestamped_store_asks_for_a_timestamp() -> None:
    with pytest.raises(ProcessingError, match=r"in-0@0: TypeError: .*put ValueAndTimestamp\('v', timestamp\)"):
        processed(lambda _, kept: kept.put("k", "v"), store="timestamped")


FORWARDS: dict[str, Callable[[Any], ks.Record[str, str]]] = {
    "a new record": lambda time: ks.Record(key="k", value="v", timestamp=time),
    "with_timestamp": lambda time: ks.Record(key="k", value="v").with_timestamp(time),
}


@pytest.mark.parametrize("make", FORWARDS.values(), ids=FORWARDS)
def test_forwarded_records(make: Any) -> None:
    for time in GOOD:
        (record,) = processed(lambda context, _, time=time: context.forward(make(time)))
        assert (record.timestamp, type(record.timestamp)) == (NOON_MS, int)
    for time in BAD:
        with pytest.raises(ProcessingError, match=SAID):
            processed(lambda context, _, time=time: context.forward(make(time)))


def test_records_of_fixed_keys() -> None:
    record = ks.FixedKeyRecord(key="k", value="v", timestamp=0)
    assert record.with_timestamp(NOON).timestamp == NOON_MS
    with pytest.raises(TypeError, match="is not a time"):
        record.with_timestamp(1.5)


def test_records_that_are_sent_and_looked_for(tmp_path: Path) -> None:
    source = TopicPartition("t", 0)
    with open_log(tmp_path) as log, log.admin() as admin, log.producer() as producer, log.consumer() as consumer:
        admin.create_topic("t")
        producer.send("t", b"k", b"early", timestamp=5)
        for time in BAD:
            if time is not None:  # the time of the clock
                with pytest.raises(LogError, match=r"cannot be sent with this timestamp: .*"):
                    producer.send("t", b"k", b"v", timestamp=time)
        for time in GOOD:
            producer.send("t", b"k", b"noon", timestamp=time)
        producer.flush()
        consumer.assign([source])
        consumer.seek_to_time(source, NOON)
        rows = [row for batch in consumer.poll(1.0) for row in batch.rows()]
        with pytest.raises(TypeError, match="is not a time"):
            consumer.seek_to_time(source, 1.5)
    assert [(row.value, row.timestamp) for row in rows] == [(b"noon", NOON_MS)] * 3


def test_dead_letters_that_a_handler_makes() -> None:
    from kstreams.record import ProducerRecord

    def letter(time: Any) -> Any:
        record = ProducerRecord("letters", b"k", b"v", time)
        return lambda context, record_, error: ks.Response.resume([record])

    def run(time: Any) -> list[int]:
        builder = ks.StreamsBuilder()
        builder.stream("in", **TEXTS).map_values(lambda v: 1 // 0, value=int).to("out")
        with TopologyTestDriver(builder.build(), {"processing.exception.handler": letter(time)}) as driver:
            driver.create_input_topic("in", **TEXTS).pipe_input("k", "v", 5)
            letters = driver.create_output_topic("letters", **TEXTS).read_records()
        return [record.timestamp for record in letters]

    assert run(NOON) == [NOON_MS]
    with pytest.raises(ProcessingError, match=r"TypeError: 1\.5 is not a time"):
        run(1.5)
