"""Processors written by hand, and what their context lets them do."""

from __future__ import annotations

import pytest

import kstreams as ks
from kstreams.errors import ProcessingError, TopologyError
from kstreams.testing import TopologyTestDriver


class Base(ks.Processor):
    """Keeps its context."""

    def init(self, context):
        self.context = context


def run(supplier, *records, stores=(), builders=(), end=None):
    """(key, value, timestamp, headers) of what a processor forwards for the given records."""
    builder = ks.StreamsBuilder()
    for store in builders:
        builder.add_state_store(store)
    builder.stream("in", key=str, value=str).process(supplier, stores=stores, key=str, value=str).to("out")
    with TopologyTestDriver(builder.build(), start_ms=500) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_records(records)
        out = driver.create_output_topic("out", key=str, value=str).read_records()
    return [(record.key, record.value, record.timestamp, record.headers) for record in out]


RECORD = ks.Record(key="k", value="v", timestamp=7, headers=(("h", b"1"),))


def test_a_record_is_forwarded_with_its_own_time_and_headers():
    class Twice(Base):
        def process(self, record):
            self.context.forward(record.with_timestamp(9).with_headers((("new", None),)))
            self.context.forward(record)

    assert run(Twice, RECORD) == [("k", "v", 9, (("new", None),)), ("k", "v", 7, (("h", b"1"),))]


def test_the_context_tells_where_and_when():
    seen = []

    class Curious(Base):
        def process(self, record):
            context = self.context
            seen.append((context.application_id, context.task_id, context.record_metadata()))
            seen.append((context.current_stream_time_ms(), context.current_system_time_ms()))

    run(Curious, RECORD, RECORD.with_timestamp(3))
    assert seen[0] == ("test", "0_0", ks.RecordMetadata("in", 0, 0))
    assert seen[1] == (7, 500)
    assert seen[2][2].offset == 1
    assert seen[3] == (7, 500)


def test_one_child_may_be_chosen():
    class Choose(Base):
        def process(self, record):
            self.context.forward(record, record.value)

    topology = ks.Topology().add_source("source", ["in"], key=str, value=str)
    topology.add_processor("choose", Choose, "source")
    for name in ("one", "two"):
        topology.add_sink(name, f"out-{name}", "choose", key=str, value=str)
    with TopologyTestDriver(topology) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        topic.pipe_values(["one", "two", "two"])
        sizes = [driver.create_output_topic(f"out-{name}", key=str, value=str).queue_size for name in ("one", "two")]
        assert sizes == [1, 2]
        with pytest.raises(ProcessingError, match="no child 'three' to forward to; its children: one, two"):
            topic.pipe_value("three")


def test_a_store_is_there_when_it_is_connected():
    class Count(Base):
        def init(self, context):
            super().init(context)
            self.store = context.get_state_store("counts")

        def process(self, record):
            self.store.put(record.key, (self.store.get(record.key) or 0) + 1)
            self.context.forward(record.with_value(str(self.store.get(record.key))))

    counts = ks.Stores.key_value("counts", key=str, value=int)
    out = run(Count, RECORD, RECORD, stores=["counts"], builders=[counts])
    assert [value for _, value, _, _ in out] == ["1", "2"]
    with pytest.raises(TopologyError, match="asks for the state store 'counts'"):
        run(Count, RECORD)


def test_nothing_may_be_forwarded_before_the_first_record():
    class Hasty(Base):
        def init(self, context):
            context.forward(RECORD)

    with pytest.raises(TopologyError, match="may forward only while"):
        run(Hasty)


def test_a_negative_time_is_refused():
    class Backwards(Base):
        def process(self, record):
            self.context.forward(record.with_timestamp(-1))

    with pytest.raises(ProcessingError, match="time starts at the epoch"):
        run(Backwards, RECORD)


def test_a_supplier_must_make_processors():
    with pytest.raises(TopologyError, match="what it was given makes a str"):
        run(lambda: "no processor")


def test_a_supplier_must_make_a_new_one_each_time():
    only = Base()
    with pytest.raises(TopologyError, match="the same Processor twice"):
        run(lambda: only)


def test_processors_are_closed_with_their_task():
    closed = []

    class Closing(Base):
        def close(self):
            closed.append(True)

    run(Closing)
    assert closed == [True]


def test_a_punctuator_that_raises_names_its_operator():
    class Failing(Base):
        def init(self, context):
            super().init(context)
            context.schedule(10, ks.PunctuationType.STREAM_TIME, lambda now: 1 / 0)

    with pytest.raises(ProcessingError, match=r"KSTREAM-PROCESSOR-0000000001 .*ZeroDivisionError"):
        run(Failing, RECORD)
