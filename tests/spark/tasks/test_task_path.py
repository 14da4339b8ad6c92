"""Whatever runs on the task path gives what the test driver gives, batch boundaries and restarts aside."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import kstreams as ks
from kstreams.errors import ProcessingError, TopologyError, UnknownTopicError
from kstreams.kernel.clock import ManualClock
from tests.spark.running import Application, Row, changelog
from tests.spark.word_count import COUNTS, LINES, WORD_TYPES, word_count

pytestmark = pytest.mark.spark


@pytest.fixture
def words(spark, tmp_path: Path) -> Application:
    return Application(spark, tmp_path, word_count(), WORD_TYPES).create("lines").write(LINES)


def test_sub_topologies_run_one_after_the_other_within_a_step(words: Application) -> None:
    progress = words.run()
    assert changelog(words.rows("counts")) == changelog(words.driver_rows("counts", LINES))
    assert progress.records_in == len(LINES)
    assert progress.records_out == {"counts": 10}


def test_state_goes_on_from_step_to_step(words: Application) -> None:
    progress = words.run(**{"spark.kstreams.max.records": 1, "spark.kstreams.snapshot.every": 2})
    assert progress.commits == 5
    assert words.table("counts") == COUNTS


def test_a_later_run_goes_on_where_the_last_one_ended(words: Application) -> None:
    words.run()
    words.write([Row("lines", "e", "the end", 9)]).run()
    assert words.table("counts")["the"] == 4
    assert words.run().commits == 0


@pytest.mark.slow
def test_results_carry_their_types_into_delta(words: Application, tmp_path: Path) -> None:
    words.run(**{"spark.kstreams.delta": str(tmp_path / "delta"), "spark.kstreams.max.records": 2})
    table = words.spark.read.format("delta").load(str(tmp_path / "delta" / "counts"))
    headers = "headers:array<struct<name:string,value:binary>>"
    assert table.schema.simpleString() == f"struct<key:string,value:bigint,timestamp:timestamp,partition:int,{headers}>"
    assert sorted((row.key, row.value) for row in table.collect()) == sorted(
        (key, value) for key, value, _ in words.rows("counts")
    )


def windowed() -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=int).group_by_key().windowed_by(ks.TimeWindows(size=10, grace=5))
    counts = stream.count().suppress(ks.Suppressed.until_window_closes())
    counts.to_stream(lambda key, count: f"{key.key}@{key.window.start_ms}").to("out", key=str, value=int)
    return builder


WINDOW_TYPES = {"in": (str, int), "out": (str, int)}
WINDOW_ROWS = [Row("in", "k", 0, time, 0) for time in (1, 5, 12, 3, 17, 2, 31, 18)]  # 2 and 18 come too late


@pytest.mark.parametrize("per_trigger", [1, 3, 100])
def test_final_results_do_not_depend_on_where_batches_are_cut(spark, tmp_path: Path, per_trigger: int) -> None:
    app = Application(spark, tmp_path, windowed(), WINDOW_TYPES).create("in", partitions=1).write(WINDOW_ROWS)
    progress = app.run(**{"spark.kstreams.max.records": per_trigger})
    closed = app.driver_rows("out", WINDOW_ROWS)
    assert [row[:2] for row in app.rows("out")] == [*(row[:2] for row in closed), ("k@30", 1)]
    assert sum(progress.dropped.values()) == 2


def test_once_leaves_open_windows_open(spark, tmp_path: Path) -> None:
    app = Application(spark, tmp_path, windowed(), WINDOW_TYPES).create("in", partitions=1).write(WINDOW_ROWS)
    app.run(until_end=False)
    assert app.rows("out") == app.driver_rows("out", WINDOW_ROWS)


def test_a_table_join_takes_rows_by_time_whatever_partition_they_lie_in(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    users = builder.table("users", key=str, value=str)
    builder.stream("clicks", key=str, value=str).join(users, lambda click, user: f"{click}/{user}").to("out", value=str)
    types = {"users": (str, str), "clicks": (str, str), "out": (str, str)}
    rows = [
        Row("users", "a", "Ann", 1),
        Row("clicks", "a", "c1", 2),
        Row("users", "a", "Anna", 3),
        Row("clicks", "a", "c2", 4),
        Row("users", "a", None, 5),
        Row("clicks", "a", "c3", 6),
    ]
    app = Application(spark, tmp_path, builder, types).create("users", "clicks")
    app.write(reversed([row for row in rows if row.topic == "users"][::-1])).write(
        row for row in rows if row.topic == "clicks"
    )
    app.run()
    assert app.rows("out") == app.driver_rows("out", rows) == [("a", "c1/Ann", 2), ("a", "c2/Anna", 4)]


def test_a_global_table_is_whole_before_the_first_row_and_grows_between_steps(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    names = builder.global_table("names", key=str, value=str)
    stream = builder.stream("in", key=str, value=str)
    stream.join(names, lambda v, name: name, key_selector=lambda k, v: v).to("out", value=str)
    types = {"names": (str, str), "in": (str, str), "out": (str, str)}
    app = Application(spark, tmp_path, builder, types).create("names", "in")
    app.write([Row("names", f"n{i}", f"Name {i}", 100) for i in range(20)])
    app.write([Row("in", f"k{i}", f"n{i}", i) for i in range(20)]).run(**{"spark.kstreams.max.records": 7})
    assert app.table("out") == {f"k{i}": f"Name {i}" for i in range(20)}
    app.write([Row("names", "n1", "New", 101), Row("in", "k1", "n1", 1)]).run()
    assert app.table("out")["k1"] == "New"


def test_several_sinks_and_topics_chosen_per_record(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    stream.to("all")
    stream.to(lambda key, value, context: f"only-{value}")
    types = {name: (str, str) for name in ("in", "all", "only-x", "only-y")}
    app = Application(spark, tmp_path, builder, types).create("in")
    app.write(Row("in", f"k{i}", "xy"[i % 2], i) for i in range(6)).run()
    assert len(app.rows("all")) == 6
    assert sorted(app.table("only-x")) == ["k0", "k2", "k4"]


def test_what_is_written_and_read_by_one_topology_is_read_within_the_step(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).to("via")
    builder.stream("via", key=str, value=str).map_values(str.upper, value=str).to("out")
    types = {name: (str, str) for name in ("in", "via", "out")}
    app = Application(spark, tmp_path, builder, types).create("in", "via").write([Row("in", "k", "v", 1)])
    app.run()
    assert app.table("out") == {"k": "V"}
    assert app.table("via") == {"k": "v"}


class Ticker(ks.Processor):
    """Counts in a store, and tells the count at every tick of its time."""

    def __init__(self, kind: ks.PunctuationType) -> None:
        self.kind = kind

    def init(self, context):
        self.context, self.store = context, context.get_state_store("seen")
        context.schedule(10, self.kind, self.tick)

    def process(self, record):
        self.store.put(record.key, (self.store.get(record.key) or 0) + 1)

    def tick(self, now_ms):
        for key, count in self.store.all():
            self.context.forward(ks.Record(key=key, value=count, timestamp=now_ms))


def ticking(kind: ks.PunctuationType) -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    builder.add_state_store(ks.Stores.key_value("seen", key=str, value=int))
    stream = builder.stream("in", key=str, value=int)
    stream.process(lambda: Ticker(kind), stores=["seen"]).to("out", key=str, value=int)
    return builder


@pytest.mark.parametrize("per_trigger", [1, 100])
def test_punctuators_of_stream_time_fire_as_in_the_driver(spark, tmp_path: Path, per_trigger: int) -> None:
    rows = [Row("in", "k", 0, time, 0) for time in (1, 4, 11, 12, 13, 25, 41)]
    app = Application(spark, tmp_path, ticking(ks.PunctuationType.STREAM_TIME), WINDOW_TYPES)
    app.create("in", partitions=1).write(rows).run(**{"spark.kstreams.max.records": per_trigger})
    assert app.rows("out") == app.driver_rows("out", rows)


def test_punctuators_of_wall_clock_time_fire_with_the_steps(spark, tmp_path: Path) -> None:
    app = Application(spark, tmp_path, ticking(ks.PunctuationType.WALL_CLOCK_TIME), WINDOW_TYPES)
    app.create("in", partitions=1)
    clock = ManualClock(1000)
    for time in (1, 2, 3):
        app.write([Row("in", "k", 0, time, 0)]).run(clock=clock, until_end=False)
        clock.advance(6)
    assert app.rows("out") == [("k", 3, 1012)]


def test_an_error_of_a_users_function_names_operator_line_and_record(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=int).map_values(lambda v: 1 // v, value=int, name="inverse").to("out")
    app = Application(spark, tmp_path, builder, WINDOW_TYPES).create("in", partitions=1)
    app.write([Row("in", "a", 1, 1), Row("in", "b", 0, 2)])
    with pytest.raises(ProcessingError, match=r"inverse .*test_task_path.*in-0@1: ZeroDivisionError") as caught:
        app.run()
    assert caught.value.operator == "inverse"
    assert app.rows("out") == []


def test_a_checkpoint_of_another_topology_is_refused(words: Application) -> None:
    words.write([Row("lines", "1", "a b a", 1)]).run()
    words.topology = word_count("sums").build()
    with pytest.raises(TopologyError, match="store 'counts' is renamed to 'sums', which would begin empty"):
        words.run()


def test_steps_and_stores_may_come_and_go_under_a_checkpoint(words: Application) -> None:
    words.write([Row("lines", "1", "a b a", 1)]).run()
    for more in (True, False):
        words.topology = word_count(more=more).build()
        words.write([Row("lines", "1", "a", 2)]).run()
    assert words.table("counts")["a"] == 5


def test_a_table_that_reuses_its_source_topic_has_its_state_in_the_checkpoint(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder({"topology.optimization": "all"})
    names = builder.table("names", key=str, value=str, materialized="names")
    builder.stream("in", key=str, value=str).join(names, lambda a, b: a + b).to("out", key=str, value=str)
    app = Application(spark, tmp_path, builder, dict.fromkeys(("names", "in", "out"), (str, str))).create("names", "in")
    app.write([Row("names", "k", "Anna", 1), Row("in", "k", "hi ", 2)]).run()
    app.write([Row("in", "k", "ho ", 3)]).run()
    assert [value for _, value, _ in app.rows("out")] == ["hi Anna", "ho Anna"]


@pytest.mark.parametrize(("reset", "first"), [("latest", 5), (timedelta(milliseconds=3), 2)])
def test_a_source_begins_where_its_reset_says(spark, tmp_path: Path, reset: object, first: int) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=int, offset_reset=reset).process(Same).to("out", key=str, value=int)
    app = Application(spark, tmp_path, builder, WINDOW_TYPES).create("in", partitions=1)
    app.write([Row("in", "k", number, number) for number in range(5)])
    app.run(clock=ManualClock(5), until_end=False)
    app.write([Row("in", "k", 5, 5)]).run(clock=ManualClock(50), until_end=False)
    assert [value for _, value, _ in app.rows("out")] == list(range(first, 6))


class Same(ks.Processor):
    """Forwards each record."""

    def init(self, context):
        self.context = context

    def process(self, record):
        self.context.forward(record)


def test_a_missing_source_topic_is_named(spark, tmp_path: Path) -> None:
    app = Application(spark, tmp_path, word_count(), WORD_TYPES).create("line")
    with pytest.raises(UnknownTopicError, match="no topic 'lines'"):
        app.run()


class Lapsing(ks.Processor):
    """Counts the records it has seen, in an attribute: that is no state."""

    def init(self, context):
        self.context, self.seen = context, 0

    def process(self, record):
        self.seen += 1
        self.context.forward(record.with_value(self.seen))


def test_attributes_of_a_processor_live_for_one_step(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=int).process(Lapsing).to("out", key=str, value=int)
    app = Application(spark, tmp_path, builder, WINDOW_TYPES).create("in", partitions=1)
    app.write([Row("in", "k", 0, time, 0) for time in (1, 2)]).run(until_end=False)
    app.write([Row("in", "k", 0, 3, 0)]).run(until_end=False)
    assert app.rows("out") == [("k", 1, 1), ("k", 2, 2), ("k", 1, 3)]


def test_stream_and_table_are_ordered_by_time_within_a_step_not_across_steps(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    users = builder.table("users", key=str, value=str)
    builder.stream("clicks", key=str, value=str).left_join(users, lambda c, user: f"{c}/{user}").to("out", value=str)
    types = {"users": (str, str), "clicks": (str, str), "out": (str, str)}
    app = Application(spark, tmp_path, builder, types).create("users", "clicks")
    app.write([Row("clicks", "a", "c1", 5), Row("users", "a", "Ann", 1)]).run(until_end=False)
    app.write([Row("clicks", "b", "c2", 5)]).run(until_end=False)
    app.write([Row("users", "b", "Ben", 1)]).run(until_end=False)
    assert app.table("out") == {"a": "c1/Ann", "b": "c2/None"}


def test_tables_are_joined_in_time_within_a_step_and_end_with_the_same_rows(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    left, right = (builder.table(topic, key=str, value=str) for topic in ("left", "right"))
    left.join(right, lambda a, b: f"{a}/{b}").to_stream().to("out", key=str, value=str)
    types = {name: (str, str) for name in ("left", "right", "out")}
    rows = [Row("left", "k", "a1", 5), Row("right", "k", "b1", 1), Row("right", "k", "b2", 6)]
    found = {}
    for cut, settings in {"whole": {}, "one by one": {"spark.kstreams.max.records": 1}}.items():
        app = Application(spark, tmp_path / cut, builder, types, **settings).create("left", "right", partitions=1)
        app.write(rows).run(until_end=False)
        found[cut] = app.rows("out")
    assert found["whole"] == [("k", "a1/b1", 5), ("k", "a1/b2", 6)]
    assert found["one by one"][-1] == found["whole"][-1]


class Named(ks.Processor):
    """Puts what the global topic says of a key into the store `names`."""

    def init(self, context):
        self.names = context.get_state_store("names")

    def process(self, record):
        self.names.put(record.key, record.value)


class Greeting(ks.Processor):
    """Counts the visits of a key, greets it by name to one child, and tells its count to the other."""

    def init(self, context):
        self.context = context
        self.names, self.visits = context.get_state_store("names"), context.get_state_store("visits")

    def process(self, record):
        visits = (self.visits.get(record.key) or 0) + 1
        self.visits.put(record.key, visits)
        self.context.forward(record.with_value(f"{record.value}, {self.names.get(record.key)}"), "greetings")
        self.context.forward(record.with_value(str(visits)), "visited")


def test_a_topology_put_together_by_hand_runs_as_it_is(spark, tmp_path: Path) -> None:
    topology = ks.Topology().add_source("coming", "in", key=str, value=str)
    names = ks.Stores.key_value("names", key=str, value=str)
    topology.add_global_store(names, "named", "names", "name", Named, key=str, value=str)
    topology.add_state_store(ks.Stores.key_value("visits", key=str, value=int))
    topology.add_processor("greet", Greeting, "coming", stores=["visits"])
    topology.add_sink("greetings", "out", "greet", key=str, value=str)
    topology.add_sink("visited", "visits-out", "greet", key=str, value=str)
    types = {name: (str, str) for name in ("in", "names", "out", "visits-out")}
    app = Application(spark, tmp_path, topology, types).create("in", "names")
    app.write([Row("names", "a", "Ann", 5), Row("in", "a", "hello", 1), Row("in", "b", "hi", 2)]).run(until_end=False)
    app.write([Row("in", "a", "again", 3)]).run(until_end=False)
    assert changelog(app.rows("out")) == {"a": [("hello, Ann", 1), ("again, Ann", 3)], "b": [("hi, None", 2)]}
    assert app.table("visits-out") == {"a": "2", "b": "1"}


def test_what_fails_becomes_visible_in_the_dead_letter_topic_with_its_step(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=int).map_values(lambda v: 10 // v, value=int, name="inverse").to("out")
    settings = {"processing.exception.handler": "continue", "errors.dead.letter.queue.topic.name": "dead"}
    types = WINDOW_TYPES | {"dead": (str, int)}
    app = Application(spark, tmp_path, builder, types, **settings).create("in", "spark-dead")
    app.write([Row("in", "a", 5, 1), Row("in", "b", 0, 2), Row("in", "c", 2, 3)])
    progress = app.run()
    assert app.table("out") == {"a": 2, "c": 5}
    assert [row[:2] for row in app.rows("dead")] == [("b", 0)]
    assert [place[0] for place in progress.dropped] == ["inverse"]
