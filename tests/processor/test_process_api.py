"""Processors written by hand, and what their context lets them do."""

from __future__ import annotations

import pytest

import kstreams as ks
from kstreams.errors import ProcessingError, TopologyError
from kstreams.processor.api.metrics import Measured
from kstreams.testing import TopologyTestDriver


class Base(ks.Processor):
    """Keeps its context."""

    def init(self, context):
        self.context = context


def run(supplier, *records, stores=(), builders=(), fixed_key=False, advance_ms=0):
    """(key, value, timestamp, headers) of what a processor forwards for the given records."""
    builder = ks.StreamsBuilder()
    for store in builders:
        builder.add_state_store(store)
    words = builder.stream("in", key=str, value=str)
    if fixed_key:
        words.process_values(supplier, stores=stores, value=str).to("out")
    else:
        words.process(supplier, stores=stores, key=str, value=str).to("out")
    with TopologyTestDriver(builder.build(), {"num.stream.threads": 2}, start_ms=500) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_records(records)
        driver.advance_wall_clock_time(advance_ms)
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


def test_a_punctuator_sees_the_stream_time_at_which_it_is_called():
    seen = []

    class Ticking(Base):
        def init(self, context):
            super().init(context)
            context.schedule(10, ks.PunctuationType.STREAM_TIME, self.tick)

        def tick(self, now):
            seen.append((now, self.context.current_stream_time_ms()))

        def process(self, record):
            pass

    run(Ticking, *(RECORD.with_timestamp(time) for time in (7, 19, 4, 40)))
    assert seen == [(7, 7), (19, 19), (40, 40)]


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
    with pytest.raises(TopologyError, match="was given a supplier that creates a str"):
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

    with pytest.raises(ProcessingError, match=r"KSTREAM-PROCESSOR-0000000001.*ZeroDivisionError"):
        run(Failing, RECORD)


class FixedBase(ks.FixedKeyProcessor):
    """Keeps its context."""

    def init(self, context):
        self.context = context


def test_a_fixed_key_processor_forwards_under_the_key_that_came():
    class Louder(FixedBase):
        def process(self, record):
            assert not hasattr(record, "with_key")
            self.context.forward(record.with_value(record.value + "!").with_timestamp(9).with_headers(()))
            self.context.forward(record)

    assert run(Louder, RECORD, fixed_key=True) == [("k", "v!", 9, ()), ("k", "v", 7, (("h", b"1"),))]


def test_a_fixed_key_processor_forwards_no_other_records():
    class Rekeying(FixedBase):
        def process(self, record):
            self.context.forward(ks.Record(key="other", value=record.value))

    with pytest.raises(ProcessingError, match="KSTREAM-PROCESSVALUES-0000000001 keeps keys as they are"):
        run(Rekeying, RECORD, fixed_key=True)


def test_behind_process_values_nothing_is_repartitioned():
    def topics(declare):
        builder = ks.StreamsBuilder()
        declare(builder.stream("in", key=str, value=str)).group_by_key().count()
        return [topic.kind for topic in builder.build().internal_topics]

    assert topics(lambda words: words.process_values(FixedBase, value=str)) == ["changelog"]
    assert topics(lambda words: words.process(Base, key=str, value=str)) == ["repartition", "changelog"]


def test_processors_of_both_kinds_are_told_apart():
    words = ks.StreamsBuilder().stream("in", key=str, value=str)
    with pytest.raises(
        TopologyError, match=r"process\(\) at .*test_process_api.py:\d+ was given a supplier that creates a FixedBase: "
    ):
        words.process(FixedBase)
    with pytest.raises(TopologyError, match=r"process_values\(\) at .* was given a supplier that creates a Base: "):
        words.process_values(Base)


def test_a_supplier_brings_its_stores():
    class Count(FixedBase):
        @classmethod
        def stores(cls):
            return [ks.Stores.key_value("counts", key=str, value=int, store="memory")]

        def process(self, record):
            counts = self.context.get_state_store("counts")
            counts.put(record.key, (counts.get(record.key) or 0) + 1)
            self.context.forward(record.with_value(str(counts.get(record.key))))

    assert [row[1] for row in run(Count, RECORD, RECORD, fixed_key=True)] == ["1", "2"]


def test_any_supplier_may_bring_stores():
    class Supplier:
        def stores(self):
            return [ks.Stores.key_value("seen", key=str, value=str)]

        def __call__(self):
            return Seen()

    class Seen(Base):
        def process(self, record):
            if self.context.get_state_store("seen").put_if_absent(record.key, record.value) is None:
                self.context.forward(record)

    assert len(run(Supplier(), RECORD, RECORD)) == 1


def test_a_store_that_two_processors_bring_is_one():
    class First(Base):
        @classmethod
        def stores(cls):
            return [ks.Stores.key_value("seen", key=str, value=str)]

    builder = ks.StreamsBuilder()
    for topic in ("a", "b"):
        builder.stream(topic, key=str, value=str).process(First)
    assert [[store.name for store in part.stores] for part in builder.build().sub_topologies] == [["seen"]]


def test_a_global_store_of_the_dsl_is_read_without_being_connected():
    class Keep(Base):
        def process(self, record):
            self.context.get_state_store("names").put(record.key, record.value.upper())

    class Greet(FixedBase):
        def process(self, record):
            self.context.forward(record.with_value(self.context.get_state_store("names").get(record.key)))

    builder = ks.StreamsBuilder()
    builder.add_global_store(ks.Stores.key_value("names", key=str, value=str), "names", Keep, key=str, value=str)
    builder.stream("in", key=str, value=str).process_values(Greet, value=str).to("out")
    topology = builder.build()
    assert topology.describe() == (
        "Topologies:\n"
        "   Sub-topology: 0 for global store (will not generate tasks)\n"
        "    Source: KSTREAM-SOURCE-0000000000 (topics: [names])\n"
        "      --> KTABLE-SOURCE-0000000001\n"
        "    Processor: KTABLE-SOURCE-0000000001 (stores: [names])\n"
        "      --> none\n"
        "      <-- KSTREAM-SOURCE-0000000000\n"
        "  Sub-topology: 1\n"
        "    Source: KSTREAM-SOURCE-0000000002 (topics: [in])\n"
        "      --> KSTREAM-PROCESSVALUES-0000000003\n"
        "    Processor: KSTREAM-PROCESSVALUES-0000000003 (stores: [])\n"
        "      --> KSTREAM-SINK-0000000004\n"
        "      <-- KSTREAM-SOURCE-0000000002\n"
        "    Sink: KSTREAM-SINK-0000000004 (topic: out)\n"
        "      <-- KSTREAM-PROCESSVALUES-0000000003\n"
        "\n"
    )
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("names", key=str, value=str).pipe_input("k", "ann")
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "?")
        assert driver.create_output_topic("out", key=str, value=str).read_values() == ["ANN"]
        assert driver.get_key_value_store("names").get("k") == "ANN"


def test_the_store_of_a_global_table_is_read_too():
    class Greet(FixedBase):
        def process(self, record):
            row = self.context.get_state_store("names").get(record.key)
            self.context.forward(record.with_value(row.value))

    builder = ks.StreamsBuilder()
    builder.global_table("names", key=str, value=str, materialized="names")
    builder.stream("in", key=str, value=str).process_values(Greet, value=str).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("names", key=str, value=str).pipe_input("k", "ann")
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "?")
        assert driver.create_output_topic("out", key=str, value=str).read_values() == ["ann"]


def test_punctuators_follow_the_wall_clock_and_know_no_record():
    class Ticking(Base):
        def init(self, context):
            super().init(context)
            context.schedule(100, ks.PunctuationType.WALL_CLOCK_TIME, self.tick)

        def process(self, record):
            assert self.context.record_metadata() is not None

        def tick(self, now):
            assert self.context.record_metadata() is None
            assert self.context.current_system_time_ms() == now
            self.context.forward(ks.Record(key="tick", value=str(now), timestamp=self.context.current_stream_time_ms()))

    assert run(Ticking, RECORD, advance_ms=99) == []
    assert run(Ticking, RECORD, advance_ms=1_000) == [("tick", "1500", 7, ())]


def test_a_cancelled_punctuator_is_called_no_more():
    class Once(Base):
        def init(self, context):
            super().init(context)
            self.schedule = context.schedule(5, ks.PunctuationType.STREAM_TIME, self.tick)

        def tick(self, now):
            self.schedule.cancel()
            self.context.forward(ks.Record(key="tick", value="", timestamp=now))

    assert [row[2] for row in run(Once, RECORD, RECORD.with_timestamp(50))] == [7]


def test_settings_and_a_folder_of_its_own_are_there():
    seen = []

    class Curious(Base):
        def init(self, context):
            (context.state_dir / "notes").write_text("mine")
            seen.append(context.app_configs()["num.stream.threads"])
            seen.append(context.app_configs_with_prefix("num.stream."))

    run(Curious)
    assert seen == [2, {"threads": 2}]


def test_sensors_are_reported_by_operator():
    class Measuring(Base):
        def process(self, record):
            self.context.metrics.add_sensor("length").record(len(record.value))

    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).process(Measuring, name="measure")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_values(["abc", "a"])
        assert driver.sensors() == {("measure", "length"): Measured(count=2, total=4, last=1, highest=3)}


def test_a_store_that_was_not_added_is_told_with_the_line_of_the_processor():
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).process(Base, stores=["nowhere"])
    with pytest.raises(TopologyError, match=r"test_process_api.py:\d+ \(K.*\) needs the state store 'nowhere': add it"):
        builder.build()


def test_a_punctuator_follows_one_of_two_times():
    class Scheduling(ks.Processor):
        def init(self, context):
            context.schedule(5, "stream", print)

        def process(self, record):
            pass

    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).process(Scheduling)
    with pytest.raises(TopologyError, match=r"KSTREAM-PROCESSOR-\d+ schedules a punctuator by 'stream': give Punct"):
        TopologyTestDriver(builder.build())
