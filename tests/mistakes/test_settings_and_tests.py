"""Mistakes with settings, the test driver, stores and processors."""

from __future__ import annotations

import pytest

from tests.mistakes.checking import check

SETTINGS = [
    ("ks.Config.of({'num.stream.thread': 2})", "num.stream.threads"),
    ("ks.Config.of({'aplication.id': 'a'})", "application.id"),
    ("ks.Config.of({'num.stream.threads': 'two'})", "num.stream.threads"),
    ("ks.Config.of({'num.stream.threads': 0})", "num.stream.threads"),
    ("ks.Config.of({'processing.guarantee': 'twice'})", "exactly_once_v2"),
    ("ks.Config.of({'commit.interval.ms': -1})", "commit.interval.ms"),
    ("ks.Config.of({'application.id': 'a b'})", "application.id"),
    ("ks.Config.of(['x'])", "mapping"),
    ("ks.StreamsBuilder({'topology.optimisation': 'all'})", "topology.optimization"),
    ("ks.StreamsBuilder({'topology.optimization': 'much'})", "topology.optimization"),
    ("ks.Config.of({'default.dsl.store': 'disk'})", "default.dsl.store"),
    ("ks.Config.of({'processing.exception.handler': 'ignore'})", "continue"),
    ("ks.Config.of({'state.dir': 5})", "state.dir"),
    ("ks.Config.of({5: 'a'})", "settings are a mapping of keys to values"),
]
DRIVER = [
    ("Driver(words)", "a function that returns one, not a KStream"),
    ("Driver(None)", "runs a StreamsBuilder, a Topology"),
    ("Driver(builder).create_input_topic('wrods', key=str, value=str)", "it reads: "),
    ("Driver(builder).create_output_topic('out', key=str, value=str)", "it writes: none"),
    ("Driver(builder).create_input_topic('words', key=str, value=Plain)", "no serde can write Plain"),
    ("Driver(builder).create_input_topic('words', key=str, value=str).pipe_input('k', 5)", "does not fit"),
    ("Driver(builder).create_input_topic('words', key=str, value=str).pipe_input('k', 'v', 1.5)", "is not a time"),
    (
        "Driver(builder).create_input_topic('words', key=str, value=str).pipe_input('k', 'v', datetime(2026, 1, 1))",
        "give it one, for example tzinfo=UTC",
    ),
    (
        "d = Driver(builder)\nt = d.create_input_topic('words', key=str, value=str)\nd.close()\nt.pipe_input('k', 'v')",
        "comes after the driver's close()",
    ),
    ("with Driver(builder) as d: pass\nd.advance_wall_clock_time(5)", "comes after the driver's close()"),
    ("Driver(builder).advance_wall_clock_time('1h')", "pass a timedelta"),
    ("Driver(builder).get_key_value_store('counts')", "has no state store 'counts'; it has: "),
    ("grouped.count('n')\nDriver(builder).get_window_store('n')", "is a timestamped-key-value store, not"),
    ("words.to('o')\nDriver(builder).create_output_topic('o', key=str, value=str).read_value()", "check is_empty"),
    (
        "numbers.map_values(lambda v: 1 // v, value=int).to('o')\n"
        "Driver(builder).create_input_topic('numbers', key=int, value=int).pipe_input(1, 0)",
        "map_values() at mistake.py:1 (KSTREAM-MAPVALUES-",
    ),
    (
        "words.to('o', value=int)\n"
        "Driver(builder).create_input_topic('words', key=str, value=str).pipe_input('k', 'v')",
        "Declare the right type with value=",
    ),
    (
        "words.flat_map(lambda k, v: 5).to('o', key=str, value=str)\n"
        "Driver(builder).create_input_topic('words', key=str, value=str).pipe_input('k', 'v')",
        "flat_map() at mistake.py:1",
    ),
    (
        "words.map(lambda k, v: v).to('o', key=str, value=str)\n"
        "Driver(builder).create_input_topic('words', key=str, value=str).pipe_input('k', 'word')",
        "map() at mistake.py:1",
    ),
    ("Driver(builder, {'aplication.id': 'a'})", "application.id"),
]
STORES = [
    ("ks.Stores.key_value('n', key=str, value=Plain)", "no serde can write Plain"),
    ("ks.Stores.key_value('a b', key=str, value=str)", "use 1 to 249 letters, digits"),
    ("ks.Stores.window('n', 5, size=10, key=str, value=str)", "retention"),
    ("ks.Materialized('n', store='disk')", "rocksdb"),
    ("ks.Materialized('n', retention=-1)", "must not be negative"),
    ("grouped.count(5)", "Materialized"),
    ("grouped.count(materialised='n')", "materialised"),
    ("builder.global_table('o', materialized=ks.Materialized(history_retention=5))", "cannot be versioned"),
    (
        "class P(ks.Processor):\n    def init(self, context): context.get_state_store('n')\n"
        "words.process(P)\nDriver(builder)",
        "Name it in stores= of this processor",
    ),
    (
        "class P(ks.Processor):\n    def init(self, context): context.forward(ks.Record(key=1, value=1))\n"
        "words.process(P)\nDriver(builder)",
        "may forward only while it processes a record",
    ),
    (
        "class P(ks.Processor):\n"
        "    def init(self, context): context.schedule(0, ks.PunctuationType.STREAM_TIME, print)\n"
        "words.process(P)\nDriver(builder)",
        "1 ms",
    ),
    (
        "class P(ks.Processor):\n    def init(self, context): context.schedule(5, 'wall', print)\n"
        "words.process(P)\nDriver(builder)",
        "give PunctuationType.STREAM_TIME",
    ),
    ("Mock().get_state_store('n')", "add it with add_state_store()"),
    ("ks.Record('k', 'v')", "positional"),
    ("ks.KafkaStreams(words, {'application.id': 'a'})", "StreamsBuilder"),
]


@pytest.mark.parametrize(("code", "said"), [*SETTINGS, *DRIVER, *STORES], ids=lambda text: text[:60])
def test_a_mistake_is_answered(code: str, said: str) -> None:
    check(code, said)
