"""Mistakes with types, serdes, topics, names and windows."""

from __future__ import annotations

import pytest

from tests.mistakes.checking import check

TYPES = [
    ("builder.stream('o', key=str, value=Plain)", "make it a dataclass, a msgspec.Struct or a pydantic model"),
    ("builder.stream('o', key=str, value=list[Plain])", "no serde can write Plain"),
    ("builder.stream('o', key='str', value=str)", "cannot use key=str: 'str' has no serde; declare a supported type"),
    ("builder.table('o', key=str, value=5)", "5 has no serde"),
    ("words.to('out', value=ks.Serde)", "is a class of serdes: make one"),
    ("words.map_values(len, value=Plain)", "cannot use value=Plain"),
    ("words.map_values(lambda v: v).to('out')\nbuilder.build()", "write value=<type> at to(), or annotate"),
    ("builder.stream('o', key=str)\nbuilder.build()", "must know the type of its value"),
    ("words.group_by(lambda k, v: v).count()\nbuilder.build()", "must know the type of its key"),
    ("grouped.aggregate(lambda: {}, lambda k, v, a: a)\nbuilder.build()", "must know the type of its value"),
    ("words.map_values(ks.col('name')).to('out')\nbuilder.build()", "map_values() at mistake.py:1"),
    ("orders.map_values(ks.col('shpo')).to('out')\nbuilder.build()", "shpo"),
    ("orders.filter(ks.col('amount') and ks.col('shop'))", "&"),
    ("orders.filter(ks.col('amount') > 'a')\nbuilder.build()", "filter() at mistake.py:1"),
    ("ks.serde_of(Plain)", "no serde can write Plain"),
    ("ks.serde_of(int).serialize('a')", "'a' is not an integer of 64 bits"),
    ("ks.serde_of(datetime).serialize(datetime(2026, 1, 1))", "give it one, for example tzinfo=UTC"),
    ("ks.serde_of(int).deserialize(b'1')", "is not an integer of 8 bytes"),
    ("ks.serde_of(Order).deserialize(b'{}')", "missing required field `shop`"),
]
NAMES = [
    ("builder.stream([])", "was given no topic to read: name at least one"),
    ("builder.stream(5)", "reads a topic, several or a pattern, not 5"),
    ("builder.table(['a', 'b'], key=str, value=str)", "takes the name of a topic, not ['a', 'b']"),
    ("builder.stream('a b', key=str, value=str)", "use 1 to 249 letters, digits"),
    ("words.to('no spaces', name='x')", "use 1 to 249 letters, digits"),
    ("words.filter(print, name='has space')", "'has space' cannot be a name"),
    ("words.filter(print, name='x')\nwords.filter(print, name='x')", "give one of them another name="),
    ("builder.table('words', key=str, value=str)\nbuilder.build()", "read it once and use that stream or table twice"),
    ("builder.stream(['words', 'o'], key=str, value=str)\nbuilder.build()", "reads topic 'words'"),
    ("grouped.count('n')\nnumbers.group_by_key().count('n')\nbuilder.build()", "give one another name"),
    ("builder.stream('o', key=str, value=str, offset_reset='first')", "earliest"),
    ("builder.stream('o', key=str, value=str, idle=-7)", "-1 stands for never"),
    ("builder.stream('o', key=str, value=str, timestamp_extractor=5)", "is no timestamp extractor"),
    ("builder.add_state_store('counts')", "takes what Stores makes, not 'counts'"),
    ("words.process(Nothing, stores=['nowhere'])\nbuilder.build()", "add it with add_state_store"),
]
WINDOWS = [
    ("ks.TimeWindows(size=0)", "size"),
    ("ks.TimeWindows(size='1h')", "pass a timedelta, or an int of milliseconds"),
    ("ks.TimeWindows(size=1.5)", "pass a timedelta, or an int of milliseconds"),
    ("ks.TimeWindows(size=10, advance=20)", "advance"),
    ("ks.TimeWindows(size=10, grace=-1)", "grace"),
    ("ks.SessionWindows(gap=-5)", "gap"),
    ("ks.SlidingWindows(difference=-5)", "difference"),
    ("ks.JoinWindows(before=-10, after=5)", "before"),
    ("ks.TimeWindows(size=timedelta(microseconds=5))", "finer than a millisecond"),
    ("grouped.windowed_by(1000)", "windowed_by() at mistake.py:1 takes TimeWindows"),
    ("grouped.windowed_by(nearby)", "takes TimeWindows, SlidingWindows, SessionWindows"),
    ("words.join(builder.stream('o', key=str, value=str), print, windows=hour)", "takes JoinWindows as windows"),
    ("grouped.windowed_by(hour).emit_strategy('close')", "EmitStrategy"),
    ("grouped.windowed_by(ks.SessionWindows(gap=5)).aggregate(int, lambda k, v, a: a)", "needs merger="),
    ("grouped.windowed_by(hour).count(ks.Materialized('n', retention=5))", "is too short for"),
    ("grouped.count().suppress(ks.Suppressed.until_window_closes())\nbuilder.build()", "put windowed_by(...) before"),
    ("grouped.count().suppress('close')", "takes Suppressed.until_window_closes()"),
    ("ks.Suppressed.until_time_limit(5, max_records=-1)", "is a whole number that is not negative"),
    ("ks.Suppressed.until_time_limit(5, max_records=5, when_full='drop')", "when_full"),
    (
        "grouped.windowed_by(ks.UnlimitedWindows()).emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)",
        "emit them on update",
    ),
    ("grouped.windowed_by(hour).rate(per=0)", "needs a unit of at least 1 ms"),
]


@pytest.mark.parametrize(("code", "said"), [*TYPES, *NAMES, *WINDOWS], ids=lambda text: text[:60])
def test_a_mistake_is_answered(code: str, said: str) -> None:
    check(code, said)
