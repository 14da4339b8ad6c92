"""An expression gives what the Python function gives that one would write instead: record by record and in columns."""

from __future__ import annotations

import hashlib
import math
import re
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams import expressions as ex
from kstreams.errors import TopologyError
from kstreams.expressions.arrow import TYPES, compute
from kstreams.expressions.exactness import Inexact, range_of
from tests.expressions.test_function_and_columns import same

HOUR = timedelta(hours=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Event(msgspec.Struct):
    n: int | None = None
    x: float | None = None
    s: str | None = None
    at: datetime | None = None
    price: Decimal | None = None
    where: Event | None = None


def null_safe(function: Callable[[Any], Any], *reads: str) -> Callable[[Event], Any]:
    """The function where all it reads is there."""
    return lambda event: None if any(getattr(event, name) is None for name in reads) else function(event)


def whole(number: float, rounded: Callable[[float], int]) -> float:
    return float(rounded(number)) if math.isfinite(number) else number


def group(pattern: str, text: str, number: int) -> str | None:
    match = re.search(pattern, text)
    return match and match.group(number)


def item(items: list[str], index: int) -> str | None:
    try:
        return items[index]
    except IndexError:
        return None


def integer(text: str, base: int = 10) -> int | None:
    """What `int` reads, but for blanks, underscores, digits of other scripts and prefixes."""
    if not re.fullmatch(r"[+-]?[0-9a-zA-Z]+", text):
        return None
    try:
        number = int(text.replace("0x", "?").replace("0X", "?"), base)
    except ValueError:
        return None
    return number if -(2**63) <= number < 2**63 else None


def moved(time: datetime, by: timedelta) -> datetime | None:
    try:
        return time + by
    except OverflowError:
        return None


n, x, s, at, price = (ks.col(name) for name in ("n", "x", "s", "at", "price"))
PAIRS: dict[str, tuple[ks.Expr, Callable[[Event], Any]]] = {
    "abs": (n.abs(), null_safe(lambda e: abs(e.n), "n")),
    "abs of a float": (x.abs(), null_safe(lambda e: abs(e.x), "x")),
    "floor": (x.floor(), null_safe(lambda e: whole(e.x, math.floor), "x")),
    "ceil": (x.ceil() + 0.0, null_safe(lambda e: whole(e.x, math.ceil) + 0.0, "x")),
    "floor of a whole number": (n.floor(), lambda e: e.n),
    "is_nan": (x.is_nan(), null_safe(lambda e: math.isnan(e.x), "x")),
    "when": (ks.when(n > 2).then(s), lambda e: e.s if e.n is not None and e.n > 2 else None),
    "otherwise": (ks.when(x > 0).then(n).otherwise(-1), lambda e: e.n if e.x is not None and e.x > 0 else -1),
    "coalesce": (ks.coalesce(s, "none"), lambda e: "none" if e.s is None else e.s),
    "strip_chars": (s.str.strip_chars(" ä"), null_safe(lambda e: e.s.strip(" ä"), "s")),
    "replace_all": (s.str.replace_all("a", "ß"), null_safe(lambda e: e.s.replace("a", "ß"), "s")),
    "slice": (s.str.slice(1, 2), null_safe(lambda e: e.s[1:3], "s")),
    "year": (at.dt.year(), null_safe(lambda e: e.at.year, "at")),
    "month": (at.dt.month(), null_safe(lambda e: e.at.month, "at")),
    "day": (at.dt.day(), null_safe(lambda e: e.at.day, "at")),
    "hour": (at.dt.hour(), null_safe(lambda e: e.at.hour, "at")),
    "minute": (at.dt.minute(), null_safe(lambda e: e.at.minute, "at")),
    "second": (at.dt.second(), null_safe(lambda e: e.at.second, "at")),
    "weekday": (at.dt.weekday(), null_safe(lambda e: e.at.isoweekday(), "at")),
    "ordinal_day": (at.dt.ordinal_day(), null_safe(lambda e: e.at.timetuple().tm_yday, "at")),
    "truncate": (at.dt.truncate(HOUR), null_safe(lambda e: e.at.replace(minute=0, second=0, microsecond=0), "at")),
    "milliseconds": (at.cast(int), null_safe(lambda e: (e.at - EPOCH) // timedelta(milliseconds=1), "at")),
    "from milliseconds": (
        (n % 10**9).cast(datetime),
        null_safe(lambda e: EPOCH + timedelta(milliseconds=e.n % 10**9), "n"),
    ),
    "to_titlecase": (s.str.to_titlecase(), null_safe(lambda e: e.s.title(), "s")),
    "reverse": (s.str.reverse(), null_safe(lambda e: e.s[::-1], "s")),
    "contains a pattern": (
        s.str.contains(r"^\w+.", literal=False),
        null_safe(lambda e: re.search(r"^\w+.", e.s) is not None, "s"),
    ),
    "slice to the end": (s.str.slice(2), null_safe(lambda e: e.s[2:], "s")),
    "slice from the end": (s.str.slice(-3, 2), null_safe(lambda e: e.s[-3:][:2], "s")),
    "head": (s.str.head(2), null_safe(lambda e: e.s[:2], "s")),
    "head without the last": (s.str.head(-2), null_safe(lambda e: e.s[:-2], "s")),
    "tail": (s.str.tail(2), null_safe(lambda e: e.s[-2:], "s")),
    "tail without the first": (s.str.tail(-2), null_safe(lambda e: e.s[2:], "s")),
    "tail of nothing": (s.str.tail(0), null_safe(lambda e: "", "s")),
    "strip_chars_start": (s.str.strip_chars_start("a "), null_safe(lambda e: e.s.lstrip("a "), "s")),
    "strip_chars_end": (s.str.strip_chars_end("a "), null_safe(lambda e: e.s.rstrip("a "), "s")),
    "strip_prefix": (s.str.strip_prefix("aä"), null_safe(lambda e: e.s.removeprefix("aä"), "s")),
    "strip_suffix": (s.str.strip_suffix("ß"), null_safe(lambda e: e.s.removesuffix("ß"), "s")),
    "strip no suffix": (s.str.strip_suffix(""), null_safe(lambda e: e.s, "s")),
    "pad_start": (s.str.pad_start(4, "é"), null_safe(lambda e: e.s.rjust(4, "é"), "s")),
    "pad_end": (s.str.pad_end(4), null_safe(lambda e: e.s.ljust(4), "s")),
    "zfill": (s.str.zfill(4), null_safe(lambda e: e.s.zfill(4), "s")),
    "upper of a replacement": (
        s.str.replace_all("a", "ß").str.upper(),
        null_safe(lambda e: e.s.replace("a", "ß").upper(), "s"),
    ),
    "replace_all with a pattern": (
        s.str.replace_all(r"(\w)b|$", r"\1-", literal=False),
        null_safe(lambda e: re.sub(r"(\w)b|$", r"\1-", e.s), "s"),
    ),
    "extract": (s.str.extract(r"a(.?)"), null_safe(lambda e: group(r"a(.?)", e.s, 1), "s")),
    "extract a group that may be missing": (
        s.str.extract(r"a(b)?", 1),
        null_safe(lambda e: group(r"a(b)?", e.s, 1), "s"),
    ),
    "extract the match": (s.str.extract(r"\d+", 0), null_safe(lambda e: group(r"\d+", e.s, 0), "s")),
    "item of a split": (s.str.split("a").list.get(1), null_safe(lambda e: item(e.s.split("a"), 1), "s")),
    "item from the end": (s.str.split(" ").list.get(-2), null_safe(lambda e: item(e.s.split(" "), -2), "s")),
    "length of a list": (s.str.split("aa").list.len(), null_safe(lambda e: len(e.s.split("aa")), "s")),
    "list.contains": (s.str.split("b").list.contains("a"), null_safe(lambda e: "a" in e.s.split("b"), "s")),
    "list.join": (s.str.split("b").list.join("--"), null_safe(lambda e: "--".join(e.s.split("b")), "s")),
    "to_integer": (s.str.to_integer(), null_safe(lambda e: integer(e.s), "s")),
    "to_integer of a base": (s.str.to_integer(16), null_safe(lambda e: integer(e.s, 16), "s")),
    "md5": (s.str.md5(), null_safe(lambda e: hashlib.md5(e.s.encode()).hexdigest(), "s")),
    "sha256": (s.str.sha256(), null_safe(lambda e: hashlib.sha256(e.s.encode()).hexdigest(), "s")),
    "crc32": (s.str.crc32() % 7, null_safe(lambda e: zlib.crc32(e.s.encode()) % 7, "s")),
    "millisecond": (at.dt.millisecond(), null_safe(lambda e: e.at.microsecond // 1000, "at")),
    "microsecond": (at.dt.microsecond(), null_safe(lambda e: e.at.microsecond, "at")),
    "quarter": (at.dt.quarter(), null_safe(lambda e: (e.at.month - 1) // 3 + 1, "at")),
    "week": (at.dt.week(), null_safe(lambda e: e.at.isocalendar()[1], "at")),
    "iso_year": (at.dt.iso_year(), null_safe(lambda e: e.at.isocalendar()[0], "at")),
    "date": (at.dt.date(), null_safe(lambda e: e.at.date(), "at")),
    "epoch": (at.dt.epoch(), null_safe(lambda e: (e.at - EPOCH) // timedelta(microseconds=1), "at")),
    "epoch in seconds": (at.dt.epoch("s"), null_safe(lambda e: (e.at - EPOCH) // timedelta(seconds=1), "at")),
    "epoch in days": (at.dt.epoch("d"), null_safe(lambda e: (e.at - EPOCH).days, "at")),
    "offset_by": (at.dt.offset_by(-HOUR * 30), null_safe(lambda e: moved(e.at, -HOUR * 30), "at")),
    "offset_by ages": (
        at.dt.offset_by(timedelta(days=3_000_000)),
        null_safe(lambda e: moved(e.at, timedelta(days=3_000_000)), "at"),
    ),
    "offset_by too much": (at.dt.offset_by(timedelta(days=4_000_000)), lambda e: None),
    "to_string": (
        at.dt.to_string("%Y-%m-%dT%H:%M:%S.%f {%j} %%"),
        null_safe(lambda e: f"{e.at.replace(tzinfo=None).isoformat(timespec='microseconds')} {{{e.at:%j}}} %", "at"),
    ),
    "times compared": (at > datetime(2000, 1, 1), null_safe(lambda e: e.at > datetime(2000, 1, 1, tzinfo=UTC), "at")),
}
events = st.builds(
    Event,
    n=st.none() | st.integers(-(2**40), 2**40),
    x=st.none() | st.sampled_from([math.nan, math.inf, -0.0, 1.5, -1.5]) | st.floats(-1e6, 1e6),
    s=st.none()
    | st.text(alphabet="aäb ß\U0001f600", max_size=5)
    | st.text(max_size=5)
    | st.sampled_from(["ab aab", "-7", "+0012", "-abb", "9" * 19, "-9223372036854775808", "1_0", "٣", "", "b\n"])
    | st.integers(-(2**70), 2**70).map(str),
    at=st.none() | st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)),
)
COLUMNS = {"n": int, "x": float, "s": str, "at": datetime}


@pytest.mark.parametrize("name", PAIRS)
@given(rows=st.lists(events, min_size=1, max_size=6))
@settings(max_examples=25)
def test_an_expression_is_the_function_of_each_record(name: str, rows: list[Event]) -> None:
    expr, function = PAIRS[name]
    computed = ex.as_function(expr, ("value",), value=Event)
    unchecked = ex.as_function(expr, ("value",))
    expected = [function(row) for row in rows]
    assert all(map(same, [computed(row) for row in rows], expected)), expected
    assert all(map(same, [unchecked(row) for row in rows], expected))


@pytest.mark.parametrize("name", PAIRS)
@given(rows=st.lists(events, min_size=1, max_size=6))
@settings(max_examples=25)
def test_an_expression_is_the_function_in_columns(name: str, rows: list[Event]) -> None:
    expr, function = PAIRS[name]
    columns = {
        repr(ks.col(field)): pa.array([getattr(row, field) for row in rows], TYPES[kind])
        for field, kind in COLUMNS.items()
    }
    try:
        range_of(expr, lambda leaf: columns[repr(leaf)])
    except Inexact:
        return
    assert all(map(same, compute(expr, dict(columns)).to_pylist(), [function(row) for row in rows]))


decimals = st.decimals(-1000, 1000, places=2)


@given(price=st.none() | decimals, by=decimals, n=st.integers(-9, 9))
def test_decimals_are_computed_exactly(price: Decimal | None, by: Decimal, n: int) -> None:
    event = Event(price=price, n=n)
    made = ks.struct(
        sum=ks.col("price") + by,
        times=ks.col("price") * ks.col("n"),
        part=ks.col("price") / ks.col("n"),
        whole=ks.col("price").floor(),
        dear=ks.col("price") > by,
        rest=ks.col("price") % 7,
    )
    found = ex.as_function(made, ("value",), value=Event, result=dict)(event)
    assert found == (
        dict.fromkeys(found)
        if price is None
        else {
            "sum": price + by,
            "times": price * n,
            "part": price / n if n else None,
            "whole": Decimal(math.floor(price)),
            "dear": price > by,
            "rest": price - math.floor(price / 7) * 7,
        }
    )


def test_exact_fractions_do_not_mix_with_binary_ones() -> None:
    with pytest.raises(TopologyError, match="exact and binary"):
        ex.as_function(ks.col("price") * 1.5, ("value",), value=Event)


def test_a_field_of_a_value_inside_is_read_and_checked() -> None:
    inner = ks.col("where").struct.field("n")
    assert ex.as_function(inner + 1, ("value",), value=Event)(Event(where=Event(n=3))) == 4
    assert ex.as_function(inner, ("value",), value=Event)(Event()) is None
    with pytest.raises(TopologyError, match="no field 'm'"):
        ex.as_function(ks.col("where").struct.field("m"), ("value",), value=Event)


@given(values=st.lists(st.none() | st.integers(0, 5) | st.just(math.nan), max_size=20))
def test_different_values_are_counted_once(values: list[Any]) -> None:
    counted = ex.aggregation({"n": ks.value.n_unique()}, result=dict)
    state = counted.initial()
    for value in values:
        state = counted.add(state, "k", value, 0)
    assert counted.result(state) == {"n": len({value for value in values if value is not None and value == value})}


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (ks.when(ks.col("n")).then(1), "needs truth values"),
        (ks.when(ks.col("n") > 1).then(1).otherwise("x"), "values of one type"),
        (ks.col("s").dt.hour(), "needs a datetime"),
        (ks.col("s").abs(), "needs a number"),
        (ks.col("n").is_nan(), "needs a float"),
        (ks.right.col("m"), "only key and value and timestamp can be read"),
    ],
)
def test_what_does_not_fit_is_refused(expr: ex.Expr, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        ex.as_function(expr, value=Event)
