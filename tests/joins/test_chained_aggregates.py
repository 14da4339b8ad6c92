"""Aggregates of aggregates: with the record cache, without it, in columns, and as a few loops over the rows say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.testing import TopologyTestDriver
from tests.support.examples import examples

UNCACHED = {"statestore.cache.max.bytes": 0}
LONG_MS = 10_000  # a grace that no input of these tests passes


class Row(NamedTuple):
    topic: str
    key: str
    value: int
    time: int

    def record(self) -> ks.Record[str, int]:
        return ks.Record(key=self.key, value=self.value, timestamp=self.time)


# ---- windows by their definition: the rows of each of them, in the order of arrival ----------------------------------

Rows = list[Row]
Windowing = Callable[[Rows], dict[str, Rows]]


def no_windows(rows: Rows) -> dict[str, Rows]:
    return {key: [row for row in rows if row.key == key] for key in {row.key for row in rows}}


def by_starts(size: int, starts_of: Callable[[Rows], Iterable[int]]) -> Windowing:
    """Windows [start, start + size), for the starts that the rows of a key have."""

    def windowing(rows: Rows) -> dict[str, Rows]:
        return {
            f"{key}@{start}/{start + size}": [row for row in own if start <= row.time < start + size]
            for key, own in no_windows(rows).items()
            for start in starts_of(own)
        }

    return windowing


def hopping_starts(size: int, advance: int) -> Callable[[Rows], Iterable[int]]:
    return lambda rows: {
        start for row in rows for start in range(0, row.time + 1, advance) if start <= row.time < start + size
    }


def sliding_windows(difference: int) -> Windowing:
    """One window that ends with each row, and one that starts behind it."""

    def windowing(rows: Rows) -> dict[str, Rows]:
        return {
            f"{key}@{start}/{start + difference}": inside
            for key, own in no_windows(rows).items()
            for row in own
            for start in (max(0, row.time - difference), row.time + 1)
            if (inside := [other for other in own if start <= other.time <= start + difference])
        }

    return windowing


def sessions(gap: int) -> Windowing:
    def windowing(rows: Rows) -> dict[str, Rows]:
        by_session = {}
        for key, own in no_windows(rows).items():
            times = sorted(row.time for row in own)
            cuts = [0, *(at for at, (one, other) in enumerate(pairwise(times), 1) if other - one > gap), len(times)]
            for first, behind in pairwise(cuts):
                start, end = times[first], times[behind - 1]
                by_session[f"{key}@{start}/{end}"] = [row for row in own if start <= row.time <= end]
        return by_session

    return windowing


WINDOWS: dict[str, tuple[Any, Windowing]] = {
    "none": (None, no_windows),
    "tumbling": (ks.TimeWindows(size=10, grace=LONG_MS), by_starts(10, hopping_starts(10, 10))),
    "hopping": (ks.TimeWindows(size=10, advance=5, grace=LONG_MS), by_starts(10, hopping_starts(10, 5))),
    "session": (ks.SessionWindows(gap=4, grace=LONG_MS), sessions(4)),
    "sliding": (ks.SlidingWindows(difference=6, grace=LONG_MS), sliding_windows(6)),
}


# ---- first aggregates: of a stream -----------------------------------------------------------------------------------


def add(key: str, value: int, total: int) -> int:
    return total + value


def until_three(key: str, value: int, total: int) -> int | None:
    """A sum that a value of 3 deletes."""
    return None if value == 3 else total + value


def until_three_of(rows: Rows) -> int | None:
    total = None
    for row in rows:
        total = until_three(row.key, row.value, total or 0)
    return total


def sum_of(rows: Rows) -> int:
    return sum(row.value for row in rows)


@dataclass(frozen=True)
class First:
    """An aggregate of a grouped stream, and the same of a list of rows; None where the order of merges decides."""

    build: Callable[[Any, dict[str, Any]], Any]
    of_rows: Callable[[Rows], int | None] | None


def by_expression(stream: Any, options: dict[str, Any]) -> Any:
    kept = stream.aggregate(n=ks.len(), total=ks.value.sum(), value=dict)
    return kept.map_values(lambda row: row["total"] + row["n"], value=int)


FIRST = {
    "count": First(lambda stream, options: stream.count(), len),
    "reduce": First(lambda stream, options: stream.reduce(lambda one, other: one + other), sum_of),
    "aggregate": First(lambda stream, options: stream.aggregate(lambda: 5, add, value=int, **options), None),
    "deleting": First(lambda stream, options: stream.aggregate(int, until_three, value=int, **options), None),
    "expressions": First(by_expression, lambda rows: sum_of(rows) + len(rows)),
}


def first_table(builder: ks.StreamsBuilder, kind: str, windows: str, cogrouped: bool) -> Any:
    groups = [builder.stream(topic, key=str, value=int).group_by_key() for topic in ("in", "other")[: 1 + cogrouped]]
    stream: Any = groups[0] if not cogrouped else groups[0].cogroup(add).cogroup(groups[1], add)
    if windows != "none":
        stream = stream.windowed_by(WINDOWS[windows][0])
    options = {"merger": lambda key, one, other: (one or 0) + (other or 0)} if windows == "session" else {}
    return stream.aggregate(int, value=int, **options) if cogrouped else FIRST[kind].build(stream, options)


# ---- further aggregates: of a table, each with what it is of a dict --------------------------------------------------

Table = dict[str, int]


def group_of(key: str, value: int) -> str:
    """Rows move from group to group as their values change."""
    return "even" if value % 2 == 0 else "odd"


def grouped(table: Table) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for key, value in table.items():
        groups.setdefault(group_of(key, value), []).append(value)
    return groups


def best(group: Any) -> Any:
    return group.top_n(2, by=int).map_values(sum, value=int)


NEXT: dict[str, tuple[Callable[[Any], Any], Callable[[list[int]], int]]] = {
    "count": (lambda group: group.count(), len),
    "reduce": (lambda group: group.reduce(lambda total, n: total + n, lambda total, n: total - n), sum),
    "aggregate": (lambda group: group.aggregate(lambda: 7, add, lambda key, n, total: total - n), lambda n: 7 + sum(n)),
    "top_n": (best, lambda values: sum(sorted(values)[-2:])),
}


def next_table(table: Any, kind: str) -> Any:
    """The aggregate of a table's groups, without groups that are empty: whether their row stays depends on commits."""
    groups = table.group_by(lambda key, value: (group_of(_text(key), value), value), key=str, value=int)
    empty = 7 if kind == "aggregate" else 0
    return NEXT[kind][0](groups).filter(lambda key, value: value != empty)


def next_of(table: Table, kind: str) -> Table:
    values = {group: NEXT[kind][1](rows) for group, rows in grouped(table).items()}
    return {group: value for group, value in values.items() if value != (7 if kind == "aggregate" else 0)}


def _text(key: Any) -> str:
    return key if isinstance(key, str) else f"{key.key}@{key.window.start_ms}/{key.window.end_ms}"


# ---- run -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chain:
    kind: str
    windows: str
    cogrouped: bool
    following: tuple[str, ...]

    def build(self) -> ks.StreamsBuilder:
        builder = ks.StreamsBuilder()
        table = first_table(builder, self.kind, self.windows, self.cogrouped)
        table.to_stream(lambda key, value: _text(key), key=str).to("first")
        for kind in self.following:
            table = next_table(table, kind)
        table.to_stream().to("last")
        return builder

    def first_of(self, rows: Rows) -> Table | None:
        """What the first table holds in the end; None where the rows alone do not say."""
        of_rows = sum_of if self.cogrouped else FIRST[self.kind].of_rows
        if of_rows is None:
            return None
        windows = WINDOWS[self.windows][1](rows)
        return {key: of_rows(own) for key, own in windows.items()}


def tables(chain: Chain, batches: list[Rows], **config: Any) -> tuple[Table, Table]:
    """The first and the last table of a chain, as their topics have them in the end."""
    with TopologyTestDriver(chain.build(), config) as driver:
        names = ("in", "other")[: 1 + chain.cogrouped]
        topics = {topic: driver.create_input_topic(topic, key=str, value=int) for topic in names}
        for rows in batches:
            driver.pipe_batch([(topics[row.topic], row.record()) for row in rows])
        return _read(driver, "first"), _read(driver, "last")


def _read(driver: TopologyTestDriver, topic: str) -> Table:
    records = driver.create_output_topic(topic, key=str, value=int).read_records()
    rows = {record.key: record.value for record in records}
    return {key: value for key, value in rows.items() if value is not None}


def check(chain: Chain, batches: list[Rows]) -> None:
    rows = [row for batch in batches for row in batch]
    expected = chain.first_of(rows)
    for config in (
        {},
        UNCACHED,
        UNCACHED | {"columns.min.rows": 0},
        {"columns.min.rows": 0},
    ):
        first, last = tables(chain, batches, **config)
        expected = first if expected is None else expected  # every other run is to give the same
        assert first == expected
        assert last == reduce(next_of, chain.following, first)


rows_ = st.lists(
    st.builds(Row, st.just("in"), st.sampled_from(["a", "b", "c"]), st.integers(0, 3), st.integers(0, 40)),
    max_size=6,
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Chain, list[Rows]]:
    chain = Chain(
        draw(st.sampled_from(sorted(FIRST))),
        draw(st.sampled_from(sorted(WINDOWS))),
        draw(st.booleans()),
        tuple(draw(st.lists(st.sampled_from(sorted(NEXT)), min_size=1, max_size=3))),
    )
    batches = draw(st.lists(rows_, max_size=5))
    if chain.cogrouped:
        batches = [[row._replace(topic=draw(st.sampled_from(["in", "other"]))) for row in rows] for rows in batches]
    return chain, batches


@pytest.mark.timeout(3600)
@pytest.mark.slow
@settings(max_examples=2_000, deadline=None)
@given(cases())
def test_a_chain_ends_with_the_tables_that_its_rows_say(case: tuple[Chain, list[Rows]]) -> None:
    check(*case)


@settings(max_examples=examples(120), deadline=None)
@given(cases())
def test_a_few_chains(case: tuple[Chain, list[Rows]]) -> None:
    check(*case)


def test_counts_of_counts_subtract_nothing_that_was_not_added() -> None:
    rows = [Row("in", key, 0, 0) for key in ("a", "a", "b", "c", "c", "b", "a", "c")]
    first, last = tables(Chain("count", "none", False, ("count",)), [[row] for row in rows], **UNCACHED)
    assert first == {"a": 3, "b": 2, "c": 3}
    assert last == {"odd": 2, "even": 1}


def test_top_n_of_counts_finds_what_it_takes_out() -> None:
    rows = [Row("in", key, 0, 0) for key in ("a", "a", "b", "c", "c", "b", "a", "c")]
    _, last = tables(Chain("count", "none", False, ("top_n",)), [[row] for row in rows], **UNCACHED)
    assert last == {"odd": 6, "even": 2}


def test_a_session_of_one_instant_is_subtracted_when_it_changes() -> None:
    rows = [Row("in", "a", 0, 5)] * 3
    first, last = tables(Chain("count", "session", False, ("reduce",)), [[row] for row in rows], **UNCACHED)
    assert first == {"a@5/5": 3}
    assert last == {"odd": 3}


def test_a_sliding_window_that_begins_with_the_aggregate_of_another_is_new() -> None:
    rows = [Row("in", "a", 0, 20), Row("in", "a", 0, 22)]
    first, last = tables(Chain("count", "sliding", False, ("reduce",)), [[row] for row in rows], **UNCACHED)
    assert first == {"a@14/20": 1, "a@16/22": 2, "a@21/27": 1}
    assert last == {"odd": 2, "even": 2}


def test_a_sliding_window_that_one_record_makes_twice_counts_once() -> None:
    """The window behind the record at 31 is the one that ends with the record at 38."""
    rows = [Row("in", "a", 0, 25), Row("in", "a", 0, 31), Row("in", "a", 0, 38)]
    first, last = tables(Chain("count", "sliding", False, ("count",)), [rows], **UNCACHED)
    assert first == {"a@19/25": 1, "a@25/31": 2, "a@26/32": 1, "a@32/38": 1}
    assert last == {"odd": 3, "even": 1}
