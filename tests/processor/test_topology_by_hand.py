"""Topologies put together by hand: what can be said, what it prints, and which mistakes are told."""

from __future__ import annotations

import re

import pytest

import kstreams as ks
from kstreams.errors import StateError, TopologyError
from kstreams.testing import TopologyTestDriver

COUNTS = ks.Stores.key_value("counts", key=str, value=int)


class Counter(ks.Processor):
    """Counts the values of a key in the store `counts`."""

    def init(self, context):
        self.context, self.counts = context, context.get_state_store("counts")

    def process(self, record):
        count = (self.counts.get(record.key) or 0) + 1
        self.counts.put(record.key, count)
        self.context.forward(record.with_value(count))


class Keep(ks.Processor):
    """Puts each record into the store `names`, values in capitals."""

    def init(self, context):
        self.names = context.get_state_store("names")

    def process(self, record):
        self.names.put(record.key, None if record.value is None else record.value.upper())


class Greet(ks.Processor):
    """Looks the value up in the store `names`."""

    def init(self, context):
        self.context, self.names = context, context.get_state_store("names")

    def process(self, record):
        self.context.forward(record.with_value(str(self.names.get(record.value))))


def source():
    return ks.Topology().add_source("in", "lines", key=str, value=str)


def names():
    return ks.Stores.key_value("names", key=str, value=str)


def piped(topology, *rows):
    """What comes out of topic `out` as values, for (topic, key, value) rows."""
    with TopologyTestDriver(topology) as driver:
        for topic, key, value in rows:
            driver.create_input_topic(topic, key=str, value=str).pipe_input(key, value, timestamp=0)
        return driver.create_output_topic("out", key=str, value=str).read_values()


def test_sources_processors_stores_and_sinks_run():
    topology = source().add_state_store(COUNTS).add_processor("count", Counter, "in", stores=["counts"])
    topology.add_sink("out", "out", "count", key=str, value=int)
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("lines", key=str, value=str).pipe_key_values([("a", "x"), ("b", "x"), ("a", "y")])
        assert driver.create_output_topic("out", key=str, value=int).read_values() == [1, 1, 2]
        assert dict(driver.get_key_value_store("counts").all()) == {"a": 2, "b": 1}


def test_describe_prints_what_kafka_streams_prints():
    topology = source().add_state_store(COUNTS).add_processor("count", Counter, "in", stores=["counts"])
    topology.add_sink("out", "out", "count", key=str, value=int)
    topology.add_global_store(names(), "names-in", "names", "keep", Keep, key=str, value=str)
    assert topology.describe() == (
        "Topologies:\n"
        "   Sub-topology: 0\n"
        "    Source: in (topics: [lines])\n"
        "      --> count\n"
        "    Processor: count (stores: [counts])\n"
        "      --> out\n"
        "      <-- in\n"
        "    Sink: out (topic: out)\n"
        "      <-- count\n"
        "\n"
        "  Sub-topology: 1 for global store (will not generate tasks)\n"
        "    Source: names-in (topics: [names])\n"
        "      --> keep\n"
        "    Processor: keep (stores: [names])\n"
        "      --> none\n"
        "      <-- names-in\n"
    )


def test_a_supplier_may_bring_its_stores():
    class Bringing(Counter):
        @classmethod
        def stores(cls):
            return [COUNTS]

    topology = source().add_processor("count", Bringing, "in")
    assert topology.sub_topologies[0].stores == (COUNTS,)
    assert list(topology.stores) == ["counts"]


def test_a_store_can_be_connected_later():
    topology = source().add_state_store(COUNTS).add_processor("count", Counter, "in")
    with pytest.raises(TopologyError, match="count asks for the state store 'counts', to which it is not connected"):
        TopologyTestDriver(topology)
    topology.connect_processor_and_state_stores("count", "counts")
    TopologyTestDriver(topology).close()


def test_a_global_store_is_read_by_every_processor_and_written_by_its_own():
    topology = source().add_processor("greet", Greet, "in").add_sink("out", "out", "greet", key=str, value=str)
    topology.add_global_store(names(), "names-in", "names", "keep", Keep, key=str, value=str)
    assert topology.internal_topics == ()
    rows = [("names", "k", "ann"), ("lines", "1", "k"), ("names", "k", None), ("lines", "2", "k")]
    assert piped(topology, *rows) == ["ANN", "None"]

    class Meddle(Greet):
        def init(self, context):
            super().init(context)
            self.names.put("k", "mine")

    with pytest.raises(StateError, match="the global store 'names' is read-only here"):
        TopologyTestDriver(
            source()
            .add_processor("meddle", Meddle, "in")
            .add_global_store(names(), "names-in", "names", "keep", Keep, key=str, value=str)
        )


def test_what_fills_a_global_store_neither_forwards_nor_schedules():
    class Scheduling(Keep):
        def init(self, context):
            context.schedule(10, ks.PunctuationType.WALL_CLOCK_TIME, print)

    class Forwarding(Keep):
        def init(self, context):
            self.process = context.forward

    def with_keeper(keeper):
        return source().add_global_store(names(), "names-in", "names", "keep", keeper, key=str, value=str)

    with pytest.raises(TopologyError, match="keep fills a global store: it cannot schedule punctuators"):
        TopologyTestDriver(with_keeper(Scheduling))
    with (
        pytest.raises(ks.KStreamsError, match="it cannot forward records"),
        TopologyTestDriver(with_keeper(Forwarding)) as driver,
    ):
        driver.create_input_topic("names", key=str, value=str).pipe_input("k", "v")


def test_a_read_only_store_is_kept_from_its_topic_and_has_no_changelog():
    topology = source().add_read_only_state_store(names(), "names-in", "names", "keep", Keep, key=str, value=str)
    topology.add_processor("greet", Greet, "in", stores=["names"]).add_sink("out", "out", "greet", key=str, value=str)
    assert piped(topology, ("names", "k", "ann"), ("lines", "1", "k")) == ["ANN"]
    assert topology.internal_topics == ()
    assert topology.stores["names"].source_topic == "names"


def mistakes():
    def by_hand(mistake, told):
        return pytest.param(mistake, told, id=told)

    same = Counter()
    other_counts = ks.Stores.key_value("counts", key=str, value=str)
    yield by_hand(lambda t: t.add_source("in", "x", key=str, value=str), "'in' is the name of another operator")
    yield by_hand(lambda t: t.add_source("b", ["lines"], key=str, value=str), "reads topic 'lines', which in")
    yield by_hand(lambda t: t.add_source("b", [], key=str, value=str), "'b' has no topic to read")
    yield by_hand(lambda t: t.add_source("", "x", key=str, value=str), "an operator needs a name")
    yield by_hand(lambda t: t.add_processor("p", Counter, "nobody"), "'p' cannot read 'nobody'")
    yield by_hand(lambda t: t.add_processor("p", Counter, "p"), "'p' cannot read 'p'")
    yield by_hand(lambda t: t.add_processor("p", Counter), "'p' reads nothing: name at least one source")
    yield by_hand(
        lambda t: t.add_processor("p", Counter, "in", stores=["x"]),
        "needs the state store 'x': add it with add_state_store",
    )
    yield by_hand(lambda t: t.add_processor("p", lambda: same, "in"), "p got the same Processor twice")
    yield by_hand(lambda t: t.add_processor("p", same, "in"), "p was given a Counter: give it a Processor class")
    yield by_hand(lambda t: t.add_processor("p", dict, "in"), "was given a supplier that creates a dict")
    yield by_hand(lambda t: t.add_sink("s", "out", key=str, value=str), "'s' reads nothing")
    yield by_hand(lambda t: t.add_sink("s", "out", "nobody", key=str, value=str), "'s' cannot read 'nobody'")
    yield by_hand(
        lambda t: t.add_sink("s", "out", "in", key=str, value=str).add_processor("p", Counter, "s"),
        "'p' cannot read 's'",
    )
    yield by_hand(lambda t: t.add_state_store(COUNTS).add_state_store(other_counts), "two state stores called 'counts'")
    yield by_hand(lambda t: t.add_state_store(COUNTS, "in"), "'in' is not a processor")
    yield by_hand(lambda t: t.add_state_store(COUNTS, "nobody"), "'nobody' is not a processor")
    yield by_hand(
        lambda t: t.add_processor("p", Counter, "in").connect_processor_and_state_stores("p"),
        "'p' is to be connected to no store",
    )
    yield by_hand(
        lambda t: t.add_global_store(names(), "n", "names", "n", Keep, key=str, value=str),
        "'n' is the name of another operator",
    )
    yield by_hand(
        lambda t: t.add_state_store(names()).add_global_store(names(), "n", "names", "k", Keep, key=str, value=str),
        "two state stores called 'names'",
    )
    yield by_hand(
        lambda t: t.add_global_store(names(), "n", "names", "keep", Keep, key=str, value=str).add_processor(
            "p", Counter, "in", stores=["names"]
        ),
        "'names' is a global store: 'p' may read it without being connected",
    )
    yield by_hand(
        lambda t: t.add_global_store(names(), "n", "names", "keep", Keep, key=str, value=str).add_processor(
            "p", Counter, "keep"
        ),
        "'p' cannot read 'keep', which fills a global store",
    )
    yield by_hand(
        lambda t: t.add_read_only_state_store(names(), "n", "lines", "keep", Keep, key=str, value=str),
        "reads topic 'lines'",
    )


@pytest.mark.parametrize(("mistake", "told"), list(mistakes()))
def test_mistakes_are_told(mistake, told):
    with pytest.raises(TopologyError, match=re.escape(told)):
        mistake(source())


def test_a_refused_processor_leaves_nothing_behind():
    topology = source()
    with pytest.raises(TopologyError):
        topology.add_processor("p", Counter, "in", stores=["counts"])
    topology.add_state_store(COUNTS).add_processor("p", Counter, "in", stores=["counts"])
    assert list(topology.nodes) == ["in", "p"]


def test_operators_know_the_line_that_added_them():
    topology = source().add_processor("p", Counter, "in").add_sink("out", "out", "p", key=str, value=int)
    lines = [node.declared_at.rpartition(":")[0] for node in topology.nodes.values()]
    assert {line.rpartition("/")[2] for line in lines} == {"test_topology_by_hand.py"}
