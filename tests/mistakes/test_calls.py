"""Mistakes in how things are called: arguments, Java's spellings, what functions return, and what is not finished."""

from __future__ import annotations

import pytest

from tests.mistakes.checking import check

PIPE = "\nDriver(builder).create_input_topic('words', key=str, value=str).pipe_input('k', 'v', 5)"
PROCESSOR = (
    "class P(ks.Processor):\n    def init(self, context): self.context = context\n    def process(self, record): "
)
PROCESSED = "\nwords.process(P, key=str, value=str).to('o')" + PIPE

BRANCHES = [
    ("words.split().branch(lambda k, v: True, name='x')['x']", "end it with default_branch() or no_default_branch()"),
    ("for branch in words.split().branch(lambda k, v: True): pass", "the split has no branches yet"),
    ("words.split(name='by-').branch(lambda k, v: True, name='large').no_default_branch()['large']", "'by-large'?"),
    ("words.split(name='by-').branch(lambda k, v: True, name='a').no_default_branch()['b']", "it has: 'by-a'"),
    ("words.split(name='by-').default_branch(name='a').to('o')", "take one of them, as ['by-a']"),
]
FORWARDS = [
    (
        PROCESSOR + "self.context.forward((record.key, record.value))" + PROCESSED,
        "forward() takes a record, not ('k', 'v')",
    ),
    (PROCESSOR + "self.context.forward(record.key, record.value)" + PROCESSED, "forward() takes a record, not 'k'"),
    (PROCESSOR + "self.context.forward(None)" + PROCESSED, "forward(ks.Record(key=..., value=..., timestamp=...))"),
    (PROCESSOR + "record.getKey()" + PROCESSED, "write key"),
    (PROCESSOR + "record.withValue(5)" + PROCESSED, "it is called with_value here"),
    (PROCESSOR + "record.offset" + PROCESSED, "write context.record_metadata().offset"),
    (PROCESSOR + "self.context.currentStreamTimeMs()" + PROCESSED, "it is called current_stream_time_ms here"),
    (
        "class P(ks.Processor):\n    def init(self, c): c.getStateStore('n')" + PROCESSED,
        "it is called get_state_store here",
    ),
    ("class P(ks.Processor):\n    def init(self): pass" + PROCESSED, "let it take self and one argument, the context"),
    ("class P(ks.Processor):\n    def process(self, key, value): pass" + PROCESSED, "one argument, the record"),
    (
        "class P(ks.Processor):\n    def init(self, c): c.schedule(5, ks.PunctuationType.STREAM_TIME, 'x')" + PROCESSED,
        "schedule() calls a function with the time in ms",
    ),
]
WINDOWS = [
    ("ks.TimeWindows(60000)", "write TimeWindows(size=60000)"),
    ("ks.TimeWindows(60000, 1000)", "write TimeWindows(size=60000, advance=1000)"),
    ("ks.TimeWindows()", "write TimeWindows(size=...)"),
    ("ks.TimeWindows(size=10, gap=5)", "it has size=, advance=, grace="),
    ("ks.TimeWindows.of(5)", "write TimeWindows(size=...)"),
    ("ks.TimeWindows.ofSizeWithNoGrace(5)", "write TimeWindows(size=...)"),
    ("ks.TimeWindows(size=5).advanceBy(3)", "write TimeWindows(size=..., advance=...)"),
    ("ks.SessionWindows(5)", "write SessionWindows(gap=5)"),
    ("ks.SessionWindows.with_(5)", "write SessionWindows(gap=...)"),
    ("ks.SlidingWindows(5)", "write SlidingWindows(difference=5)"),
    ("ks.SlidingWindows.ofTimeDifferenceWithNoGrace(5)", "write SlidingWindows(difference=...)"),
    ("ks.JoinWindows(5, 5)", "write JoinWindows(before=5, after=5)"),
    ("ks.JoinWindows.of()", "JoinWindows.of() needs difference"),
    ("ks.JoinWindows.of(size=5)", "it has difference=, grace="),
    ("ks.UnlimitedWindows(5)", "write UnlimitedWindows(start=5)"),
    ("ks.UnlimitedWindows.of()", "write UnlimitedWindows()"),
    ("ks.TumblingWindows(size=5)", "write TimeWindows(size=...)"),
    ("grouped.windowed_by(size=60000)", "it has windows="),
    (
        "grouped.windowed_by(hour).count().to_stream(lambda w, n: w.window.start, key=int).to('o')" + PIPE,
        "Window has no start: write start_ms",
    ),
    ("ks.Window(0, 5).end()", "Window has no end: write end_ms"),
    (
        "grouped.windowed_by(hour).count().to_stream(lambda w, n: w.start_ms, key=int).to('o')" + PIPE,
        "write window.start_ms and window.end_ms",
    ),
]
RESULTS = [
    ("words.map(lambda k, v: v, key=str, value=str).to('o')" + PIPE, "returned 'v': return a pair, as (key, value)"),
    ("words.map(lambda k, v: 'ab', key=str, value=str).to('o')" + PIPE, "returned 'ab': return a pair"),
    ("words.map(lambda k, v: {'a': 1, 'b': 2}, key=str, value=str).to('o')" + PIPE, "return a pair"),
    ("words.map(lambda k, v: (k, v, 5), key=str, value=str).to('o')" + PIPE, "returned ('k', 'v', 5): return a pair"),
    ("words.map(lambda k, v: None, key=str, value=str).to('o')" + PIPE, "returned None: return a pair"),
    ("words.flat_map(lambda k, v: None, key=str, value=str).to('o')" + PIPE, "return a list of (key, value) pairs"),
    ("words.flat_map(lambda k, v: (k, v), key=str, value=str).to('o')" + PIPE, "returned 'k': return a pair"),
    ("words.flat_map_values(lambda v: None, value=str).to('o')" + PIPE, "return a list of values, [] for none"),
    (
        "users.group_by(lambda k, v: v, key=str, value=str).count()\n"
        "Driver(builder).create_input_topic('users', key=str, value=str).pipe_input('k', 'v', 5)",
        "returned 'v': return a pair, as (key, value)",
    ),
    ("def g(v):\n    yield v\nwords.map_values(g)", "write return instead of yield"),
    ("def g(k, v):\n    yield True\nwords.filter(g)", "is a generator function"),
    ("def g(k, v):\n    yield k\nwords.foreach(g)", "is a generator function"),
]
CALLS = [
    ("words.to('o', str, int)", "write to('o', key=str, value=int)"),
    ("words.to('o', key_serde=str)", "did you mean key=?"),
    ("words.repartition(5)", "write repartition(partitions=5)"),
    ("words.merge()", "merge() needs other"),
    ("words.join(users)", "join() needs joiner"),
    ("words.process()", "process() needs supplier"),
    ("builder.stream('a', str, str)", "write stream('a', key=str, value=str)"),
    ("builder.stream(topic='a')", "did you mean topics=?"),
    ("builder.run()", "write KafkaStreams(builder, config).start()"),
    ("ks.KafkaStreams(builder)", "KafkaStreams() needs config"),
    ("ks.KafkaStreams(builder, application_id='a')", "it has topology=, config="),
    ("ks.Suppressed.untilWindowCloses()", "it is called until_window_closes here"),
    ("ks.Stores.persistentKeyValueStore('x')", "write Stores.key_value(name, ...)"),
    ("ks.Stores.key_value()", "Stores.key_value() needs name"),
    ("ks.Materialized.as_('x')", "write Materialized(name), or the name alone"),
    ("ks.Materialized('x', key=str)", "Materialized() has no argument key="),
    ("ks.KeyValue('a', 'b')", "write a pair, as (key, value)"),
    ("ks.sum(ks.col('x'))", "as ks.col('x').sum()"),
    ("words.filter(ks.value.len() > 3)", "Expr has no len: write .str.len()"),
    ("words.map_values(ks.value.toUpper())", "Expr has no toUpper"),
    ("Driver(builder, 'app')", "settings are a mapping of keys to values"),
    ("Driver(builder).createInputTopic('words')", "it is called create_input_topic here"),
    ("Driver(builder).pipe_input('k', 'v')", "create_input_topic(name, key=..., value=...).pipe_input(key, value)"),
    ("Driver(builder).create_input_topic('words')", "needs key= and value=: write create_input_topic('words', key=..."),
    ("Driver(builder).create_input_topic('words', key=str, value=str).pipe_input('v')", "pipe_input() needs value"),
    ("Driver(builder).create_input_topic('words', key=str, value=str).pipe_record(('k', 'v'))", "takes a ks.Record"),
    (
        "Driver(builder).create_input_topic('words', key=str, value=str).pipe_key_values(['a'])",
        "write pipe_values(...)",
    ),
]
FLUSHES = [
    (
        "grouped.count().to_stream().map_values(lambda n: 1 // 0, value=int).to('o')" + PIPE,
        "map_values() at mistake.py:1 (KSTREAM-MAPVALUES-",
    ),
    (
        "grouped.count().to_stream().map_values(lambda n: 1 // 0, value=int).to('o')" + PIPE,
        "failed on record (none: a flush of the record cache, key 'k'): ZeroDivisionError",
    ),
    (
        "grouped.windowed_by(hour).count().to_stream().map_values(lambda n: 1 // 0, value=int).to('o', key=str)" + PIPE,
        "a flush of the record cache, key Windowed(key='k', window=Window(start_ms=0, ",
    ),
    (
        "grouped.reduce(lambda a, b: a).group_by(lambda k, v: (1 // 0, v), key=int, value=str).count()" + PIPE,
        "a flush of the record cache, key 'k'): ZeroDivisionError",
    ),
    ("users.filter(lambda k, v: 1 // 0, name='f').to_stream().to('o')\n" + PIPE.replace("words", "users"), "users-0@0"),
]


@pytest.mark.parametrize(
    ("code", "said"),
    [*BRANCHES, *FORWARDS, *WINDOWS, *RESULTS, *CALLS, *FLUSHES],
    ids=lambda text: text.replace(PIPE, "")[:80],
)
def test_a_mistake_is_answered(code: str, said: str) -> None:
    check(code, said)
