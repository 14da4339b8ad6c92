"""`TopologyTestDriver`: what a user's test can do with it."""

from __future__ import annotations

import pytest

import kstreams as ks
from kstreams.errors import ProcessingError, SerdeError, StateError, UnknownTopicError
from kstreams.testing import TopologyTestDriver
from kstreams.testing.driver import batches_keep_order


@pytest.fixture
def driver_of():
    """Makes drivers of builders; closes them at the end."""
    drivers = []

    def make(builder, config=None, start_ms=0):
        drivers.append(TopologyTestDriver(builder.build(), config, start_ms=start_ms))
        return drivers[-1]

    yield make
    for driver in drivers:
        driver.close()


def word_count():
    builder = ks.StreamsBuilder()
    words = builder.stream("lines", key=str, value=str).flat_map_values(str.split, value=str)
    words.group_by(lambda key, word: word, key=str).count(materialized="counts").to_stream().to(
        "counts", key=str, value=int
    )
    return builder


def shout():
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(str.upper, value=str).to("out")
    return builder


def texts(driver, topic="in", **options):
    return driver.create_input_topic(topic, key=str, value=str, **options)


def results(driver, topic="out", value=str):
    return driver.create_output_topic(topic, key=str, value=value)


def test_records_run_through_all_sub_topologies(driver_of):
    driver = driver_of(word_count())
    texts(driver, "lines").pipe_values(["a b", "b"])
    assert results(driver, "counts", int).read_key_values() == [("a", 1), ("b", 1), ("b", 2)]
    repartition = "test-counts-repartition"
    assert results(driver, repartition).read_values() == ["a", "b", "b"]
    assert {"counts", repartition, "test-counts-changelog"} <= driver.produced_topic_names()


def test_input_may_be_given_in_many_ways(driver_of):
    driver = driver_of(shout(), start_ms=100)
    topic = texts(driver, auto_advance=10)
    topic.pipe_input("k", "a")
    topic.pipe_input("k", "b", timestamp=5, headers=[("h", b"1")])
    topic.pipe_value("c")
    topic.advance_time(1_000)
    topic.pipe_key_values([("x", "d"), ("y", "e")])
    topic.pipe_records([ks.Record(key="z", value="f", timestamp=7)])
    read = results(driver).read_records()
    assert [(r.key, r.value, r.timestamp) for r in read] == [
        ("k", "A", 100), ("k", "B", 5), (None, "C", 110), ("x", "D", 1_120), ("y", "E", 1_130), ("z", "F", 7)
    ]  # fmt: skip
    assert [r.headers for r in read][:2] == [(), (("h", b"1"),)]


def test_output_may_be_read_in_many_ways(driver_of):
    driver = driver_of(shout())
    texts(driver).pipe_key_values([("a", "1"), ("b", "2"), ("a", "3"), ("a", "4"), ("c", "5")])
    out = results(driver)
    assert out.queue_size == 5
    assert out.read_value() == "1"
    assert out.read_key_value() == ("b", "2")
    assert out.read_key_values_to_map() == {"a": "4", "c": "5"}
    assert out.is_empty


def test_reading_what_is_not_there_is_an_error(driver_of):
    with pytest.raises(LookupError, match="Topic out holds no further record"):
        results(driver_of(shout())).read_value()


def test_a_map_has_no_place_for_a_null_key(driver_of):
    driver = driver_of(shout())
    texts(driver).pipe_value("a")
    with pytest.raises(LookupError, match="without a key"):
        results(driver).read_key_values_to_map()


def test_unknown_topics_are_errors_that_name_the_known_ones(driver_of):
    driver = driver_of(shout())
    with pytest.raises(UnknownTopicError, match="does not read topic 'out'; it reads: in"):
        texts(driver, "out")
    with pytest.raises(UnknownTopicError, match="does not write topic 'in'; it writes: out"):
        results(driver, "in")


def test_any_topic_may_be_read_when_a_sink_chooses(driver_of):
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).to(lambda key, value, record: value)
    driver = driver_of(builder)
    texts(driver).pipe_value("there")
    assert results(driver, "there").read_value() == "there"


def test_topics_of_a_pattern_may_be_written(driver_of):
    import re

    builder = ks.StreamsBuilder()
    builder.stream(re.compile("in-.*"), key=str, value=str).to("out")
    driver = driver_of(builder)
    texts(driver, "in-1").pipe_value("a")
    assert results(driver).read_value() == "a"


def test_errors_surface_where_the_record_was_piped(driver_of):
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).foreach(lambda key, value: 1 / 0)
    driver = driver_of(builder)
    with pytest.raises(ProcessingError, match="KSTREAM-FOREACH-0000000001"):
        texts(driver).pipe_value("a")


def test_a_value_of_the_wrong_type_is_an_error_of_the_input_topic(driver_of):
    with pytest.raises(SerdeError, match="The value 5 for topic in"):
        texts(driver_of(shout())).pipe_value(5)


class TestStores:
    def test_tables_are_read_with_and_without_their_timestamps(self, driver_of):
        driver = driver_of(word_count())
        texts(driver, "lines").pipe_input(None, "a a", timestamp=9)
        assert list(driver.get_timestamped_key_value_store("counts").all()) == [("a", ks.ValueAndTimestamp(2, 9))]
        assert driver.get_key_value_store("counts").get("a") == 2
        assert list(driver.get_key_value_store("counts").all()) == [("a", 2)]
        assert list(driver.get_all_state_stores()) == ["counts"]

    def test_stores_of_aggregations_by_expressions_have_results(self, driver_of):
        builder = ks.StreamsBuilder()
        numbers = builder.stream("numbers", key=str, value=float).group_by_key()
        numbers.aggregate(mean=ks.value.mean(), materialized="means")
        windows = numbers.windowed_by(ks.TimeWindows(size=10))
        windows.aggregate(mean=ks.value.mean(), materialized="means-of-windows")
        driver = driver_of(builder)
        driver.create_input_topic("numbers", key=str, value=float).pipe_key_values([("a", 1.0), ("a", 2.0)])

        means = driver.get_key_value_store("means")
        assert means.get("a").mean == 1.5
        assert [(key, row.mean) for key, row in means.all()] == [("a", 1.5)]
        assert (means.get("b"), means.approximate_num_entries()) == (None, 1)
        assert driver.get_timestamped_key_value_store("means").get("a").value.mean == 1.5
        assert [row.mean for _, row in driver.get_window_store("means-of-windows").all()] == [1.5]

    def test_unknown_stores_are_errors_that_name_the_known_ones(self, driver_of):
        with pytest.raises(StateError, match="no state store 'count'; it has: counts"):
            driver_of(word_count()).get_state_store("count")

    def test_stores_of_another_kind_are_errors(self, driver_of):
        with pytest.raises(StateError, match="is a timestamped-key-value store, not a session store"):
            driver_of(word_count()).get_session_store("counts")

    def test_their_files_are_gone_after_the_end(self, driver_of, tmp_path, monkeypatch):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        driver = driver_of(word_count())
        assert list(tmp_path.iterdir())
        driver.close()
        assert list(tmp_path.iterdir()) == []


def test_a_global_table_takes_its_records_at_once(driver_of):
    builder = ks.StreamsBuilder()
    names = builder.global_table("names", key=str, value=str, materialized="names")
    stream = builder.stream("in", key=str, value=str)
    stream.join(names, lambda a, b: f"{a}={b}", key_selector=lambda k, v: v).to("out", value=str)
    driver = driver_of(builder)
    texts(driver, "names").pipe_input("x", "Xaver")
    texts(driver).pipe_input("k", "x")
    assert results(driver).read_value() == "x=Xaver"
    assert driver.get_key_value_store("names").get("x") == "Xaver"


class Ticker(ks.Processor):
    """Forwards the time at each punctuation."""

    def __init__(self, kind):
        self.kind = kind

    def init(self, context):
        self.context = context
        context.schedule(10, self.kind, self.tick)

    def tick(self, now_ms):
        assert self.context.record_metadata() is None
        self.context.forward(ks.Record(key="tick", value=str(now_ms), timestamp=now_ms))


def ticking(kind):
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).process(lambda: Ticker(kind), key=str, value=str).to("out")
    return builder


def test_wall_clock_punctuators_fire_when_the_clock_is_moved_once_however_far(driver_of):
    driver = driver_of(ticking(ks.PunctuationType.WALL_CLOCK_TIME), start_ms=1_000)
    driver.advance_wall_clock_time(9)
    assert results(driver).is_empty
    driver.advance_wall_clock_time(26)
    assert results(driver).read_values() == ["1035"]
    driver.advance_wall_clock_time(5)
    assert results(driver).read_values() == ["1040"]


def test_stream_time_punctuators_fire_after_the_record_that_moved_the_time(driver_of):
    driver = driver_of(ticking(ks.PunctuationType.STREAM_TIME))
    for time in (3, 9, 10, 35, 12, 40):
        texts(driver).pipe_input("k", "v", timestamp=time)
    assert results(driver).read_values() == ["3", "10", "35", "40"]


def test_dropped_records_are_counted(driver_of):
    builder = ks.StreamsBuilder()
    builder.table("in", key=str, value=str, materialized="rows")
    driver = driver_of(builder)
    texts(driver).pipe_value("no key")
    assert driver.dropped == {("KTABLE-SOURCE-0000000001", "null key"): 1}


def test_the_end_of_input_lets_out_what_waits(driver_of):
    builder = ks.StreamsBuilder()
    windowed = builder.stream("in", key=str, value=str).group_by_key().windowed_by(ks.TimeWindows(size=10))
    final = windowed.count().suppress(ks.Suppressed.until_window_closes())
    final.to_stream(lambda window, count: window.key, key=str).to("out")
    driver = driver_of(builder)
    texts(driver).pipe_input("k", "v", timestamp=3)
    assert results(driver, value=int).is_empty
    driver.end_of_input()
    assert results(driver, value=int).read_key_values() == [("k", 1)]


class TestBatches:
    def piped(self, driver, topics, records):
        driver.pipe_batch([(topics[name], ks.Record(key=k, value=v, timestamp=t)) for name, k, v, t in records])

    def test_a_batch_takes_records_of_all_topics_in_the_given_order(self, driver_of):
        builder = ks.StreamsBuilder()
        builder.stream(["a", "b"], key=str, value=str).to("out")
        driver = driver_of(builder, {"statestore.cache.max.bytes": 0})
        topics = {name: texts(driver, name) for name in "ab"}
        self.piped(driver, topics, [("a", "k", "1", 9), ("b", "k", "2", 1), ("b", "k", "3", 0), ("a", "k", "4", 5)])
        assert results(driver).read_values() == ["1", "2", "3", "4"]

    def test_chains_of_sub_topologies_take_whole_batches(self):
        assert batches_keep_order(word_count().build().sub_topologies)

    def test_sub_topologies_whose_ways_meet_again_do_not(self):
        builder = ks.StreamsBuilder()
        stream = builder.stream("in", key=str, value=str)
        left, right = stream.select_key(lambda k, v: v, key=str), stream.select_key(lambda k, v: k, key=str)
        left.join(right, lambda a, b: a + b, windows=ks.JoinWindows.of(5)).to("out", value=str)
        assert not batches_keep_order(builder.build().sub_topologies)
