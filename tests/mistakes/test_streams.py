"""Mistakes with streams, tables, groupings and joins."""

from __future__ import annotations

import pytest

from tests.mistakes.checking import check

NAMES = [
    ("words.mapValues(str.upper)", "it is called map_values here"),
    ("words.groupByKey()", "it is called group_by_key here"),
    ("words.flatmap(str.split)", "did you mean flat_map?"),
    ("words.count()", "call group_by_key() first"),
    ("words.windowed_by(hour)", "call group_by_key() first"),
    ("users.to('out')", "call to_stream() first"),
    ("users.print()", "call to_stream() first"),
    ("users.foreach(print)", "call to_stream() first"),
    ("users.count()", "call group_by(...) first"),
    ("grouped.to('out')", "call count().to_stream() first"),
    ("grouped.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)", "call windowed_by(...) first"),
    ("grouped.windowed_by(hour).suppress(None)", "write suppress() on the KTable of an aggregation"),
    ("words.transform(Nothing)", "write process()"),
    ("words.through('topic')", "to() a topic and read it again"),
    ("grouped.sum()", "aggregate(total=ks.value.sum())"),
    ("builder.globalTable('t')", "it is called global_table here"),
    ("builder.filter(print)", "a KStream has it, call stream(...) first"),
    ("ks.StreamBuilder()", "did you mean StreamsBuilder?"),
    ("ks.Consumed", "its place is taken by the keywords key="),
    ("ks.TopologyTestDriver", "import it from kstreams.testing"),
]
FUNCTIONS = [
    ("words.filter(lambda v: True)", "calls its predicate as predicate(key, value)"),
    ("words.map(lambda v: (v, v))", "calls its function as function(key, value)"),
    ("words.map_values(lambda k, v: v)", "give with_key=True, or leave the key out"),
    ("words.map_values(lambda v: v, with_key=True)", "leave with_key=True out"),
    ("words.foreach(lambda v: None)", "function(key, value)"),
    ("grouped.reduce(lambda k, a, b: a)", "calls its reducer as reducer(aggregate, value)"),
    ("grouped.aggregate(lambda k: 0, lambda k, v, a: a)", "let it take no argument"),
    ("grouped.aggregate(int, lambda v, a: a)", "aggregator(key, value, aggregate)"),
    ("grouped.aggregate(0, lambda k, v, a: a)", "takes a function as initializer, not 0"),
    ("grouped.aggregate(int)", "takes either an initializer and an aggregator, or named expressions"),
    ("grouped.aggregate(total=5)", "takes expressions as fields, such as total=ks.len()"),
    ("words.filter('x > 3')", "takes a function or an expression as predicate, not 'x > 3'"),
    ("words.map_values(None)", "takes a function or an expression as function, not None"),
    ("words.map_values(str.upper('a'))", "takes a function or an expression as function, not 'A'"),
    ("words.map(ks.value)", "a function or a pair of expressions as function"),
    ("words.filter(lambda k, v: True, nmae='x')", "unexpected keyword nmae"),
    ("words.map_values(str.upper, concurrency=0)", "concurrency=0 leaves no call to make"),
    ("words.map_values(str.upper, ordered='no')", 'give True, False or "by_key"'),
    ("async def f(a, b): return a\ngrouped.reduce(f)", "cannot wait for an async function"),
    ("words.split().branch(lambda v: True).no_default_branch()", "predicate(key, value)"),
    ("words.group_by(lambda v: v)", "function(key, value)"),
    ("users.group_by(lambda k, v: v, 5)", "write group_by(..., name=5)"),
    ("words.to(lambda k, v: 'out')", "topic(key, value, record)"),
    ("words.to(5)", "takes str or a function or an expression as topic"),
    ("words.process(Nothing())", "give it a Processor class, or a function that creates a new one"),
    (
        "words.process(dict)",
        "was given a supplier that creates a dict: give it a class or function that creates a Processor",
    ),
    ("one = Nothing()\nwords.process(lambda: one)", "its supplier must make a new one at each call"),
    ("words.process(Nothing, stores='counts')", "write stores=['counts']"),
    ("words.deduplicate(-5)", "was given a negative time"),
    ("words.sample(5)", "takes a fraction from 0 to 1, not 5"),
    ("grouped.top_n(0, by=len)", "give 1 or more"),
    ("words.map_batch(lambda rows: rows, value=str, format='csv')", "csv"),
    ("words.repartition(partitions=0)", "needs at least 1 partition"),
    ("words.deduplicate(5.0)", "pass a timedelta, or an int of milliseconds"),
]
HEADERS = [
    ("words.filter(lambda record: True)", "or give with_record=True, which calls it with the whole record"),
    ("words.filter(lambda k, v: True, with_record=True)", "let it take the record alone, which has key and value"),
    ("words.map_values(ks.value, with_record=True)", "with_record=True at mistake.py:1 is for functions"),
    ("words.map_values(str, with_record=True, with_key=True)", "leave with_key out, the record has the key"),
    ("words.filter(print, with_records=True)", "unexpected keyword with_records"),
    ("users.filter(lambda r: True, with_record=True)", "filter() has no argument with_record="),
    ("users.filter(ks.topic == 'a').to_stream().to('o')\nbuilder.build()", "ks.topic cannot be used here"),
    ("words.join(users, ks.header('a') + ks.right.value).to('o')\nbuilder.build()", "ks.header('a') cannot be used"),
    ("words.map_headers(lambda k, v: v)", "calls its function as function(headers)"),
    ("words.map_headers({'a': 'b'})", "takes a function as function, not {'a': 'b'}"),
    ("words.with_headers()", "with_headers() at mistake.py:1 needs a header"),
    ("words.with_headers('trace-id')", "write with_headers({'trace-id': ...})"),
    ("words.with_headers(name=ks.value)", 'a header called name is {"name": ks.value}'),
    ("words.with_headers(a=print)", "the header 'a' is made by a function: give it to map_headers()"),
    ("words.with_headers(a=[1])", "a header holds text, bytes, an int, a float, a bool or None, not [1]"),
    ("words.with_headers(a=ks.timestamp.cast(datetime)).to('o')\nbuilder.build()", "makes the header 'a' of"),
    ("words.drop_headers()", "needs the names of headers, as drop_headers"),
    ("words.drop_headers(['a'])", "takes the names of headers, not ['a']"),
    ("words.withHeaders(a=1)", "it is called with_headers here"),
    ("words.set_headers(a=1)", "did you mean with_headers?"),
    ("ks.header()", "name"),
    ("ks.header(5)", "takes the name of a header, not 5"),
    ("ks.header('a', type=dict)", "takes type=str, bytes, int, float, bool or a serde, not dict"),
    ("ks.header('a', type=5)", "takes type=str, bytes, int, float, bool or a serde, not 5"),
    ("ks.header_", "did you mean header"),
]
JOINS = [
    ("words.join(numbers, print, windows=nearby)", "which are never equal: give one side the other's keys"),
    ("numbers.join(users, print)", "joins keys of int, from stream() at"),
    ("users.join(builder.table('n', key=int, value=str), print)", "which are never equal"),
    ("words.join(builder.stream('o', key=str, value=str), print)", "needs windows=JoinWindows.of(...)"),
    ("words.join(users, print, windows=nearby)", "windows= belongs to a join with a KStream: leave it out"),
    ("words.join(countries, print)", "needs key_selector=: which key of the table a record has"),
    ("words.join(users, print, key_selector=print)", "key_selector= belongs to a join with a GlobalKTable"),
    ("words.join('users', print)", "takes a KStream or KTable or GlobalKTable, not 'users'"),
    ("words.join(users)", "joiner"),
    ("words.join(users, lambda k, a, b: a)", "give with_key=True, or leave the key out"),
    ("words.outer_join(users, print)", "takes a KStream, not KTable"),
    ("users.join(words, print)", "takes a KTable, not KStream"),
    ("users.join(users, lambda a: a)", "joiner(left, right)"),
    ("users.join(users, print, foreign_key=lambda k, v: v)", "foreign_key(left)"),
    ("users.join(users, print, partitioner=print)", "belong to a join by foreign key: give it foreign_key="),
    ("words.join(users, print, grace=-5)", "cannot wait for a negative time"),
    ("words.join(countries, print, key_selector=print, other_value=str)", "other_value= belongs"),
    ("words.merge(users)", "merge() at mistake.py:1 takes a KStream, not KTable"),
    ("words.merge(ks.StreamsBuilder().stream('o', key=str, value=str))", "declare both by one"),
    ("grouped.cogroup(lambda k, v, a: a).cogroup(words, print)", "takes a KGroupedStream, not KStream"),
    ("words.join(users, print, value=Plain)", "cannot use value=Plain: no serde can write Plain"),
]


LIKE_ANOTHER = [  # operators of one kind, one after the other or side by side: the one that failed is named
    (
        "words.filter(ks.key == 'a').map_values(lambda v: 1 // 0, value=int).to('o')\n"
        "words.map_values(lambda v: 1, value=int).to('p')\n"
        "Driver(builder).create_input_topic('words', key=str, value=str).pipe_input('a', 'v')",
        "map_values() at mistake.py:1",
    ),
    (
        "words.repartition().map_values(lambda v: 1 // 0, value=int).to('o')\n"
        "words.map_values(lambda v: 1, value=int).to('p')\n"
        "Driver(builder).create_input_topic('words', key=str, value=str).pipe_input('a', 'v')",
        "map_values() at mistake.py:1",
    ),
    (
        "words.process(Pass, key=str, value=str).map_values(lambda v: v, value=str).process(Pass, key=str, value=str)"
        ".map_values(lambda v: 1 // 0, value=int, name='second').to('o')\n"
        "Driver(builder).create_input_topic('words', key=str, value=str).pipe_input('a', 'v')",
        "second (map_values() at mistake.py:1)",
    ),
    (
        "words.process(Pass, key=str, value=str).map_values(lambda v: 1 // 0, value=str, name='first')"
        ".process(Pass, key=str, value=str)"
        ".map_values(lambda v: v, value=str).to('o')\n"
        "Driver(builder).create_input_topic('words', key=str, value=str).pipe_input('a', 'v')",
        "first (map_values() at mistake.py:1)",
    ),
]


@pytest.mark.parametrize(
    ("code", "said"), [*LIKE_ANOTHER, *NAMES, *FUNCTIONS, *HEADERS, *JOINS], ids=lambda text: text[:60]
)
def test_a_mistake_is_answered(code: str, said: str) -> None:
    check(code, said)
