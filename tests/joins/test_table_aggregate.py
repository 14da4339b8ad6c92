"""Aggregates of tables by another key, against the definition: old rows leave their group, new ones join one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from tests.joins.driven import CACHED, UNCACHED, run, table_of


def grouped(records, aggregate, config=UNCACHED, view=lambda table: table, history=None):
    """The aggregate of table `in` by the first letter of each row, as texts."""
    builder = ks.StreamsBuilder()
    table = builder.table("in", key=str, value=str, materialized=ks.Materialized("rows", history_retention=history))
    groups = view(table).group_by(group, key=str, value=str)
    aggregate(groups).to_stream().map_values(str).to("out", key=str, value=str)
    return run(builder, [("in", *record) for record in records], config)


def group(key, value):
    """Rows that begin with "-" belong to no group."""
    return None if value[0] == "-" else value[0], value


def count(groups):
    return groups.count("counts")


def listed(groups):
    """The rows of a group, in the order in which they joined."""
    return groups.aggregate(list, added, removed, value=list[str])


def added(key, row, rows):
    return [*rows, row]


def removed(key, row, rows):
    rows = list(rows)
    rows.remove(row)
    return rows


def longest(groups):
    """A reduce that keeps a text of all rows that ever joined, and those that left."""
    return groups.reduce(lambda rows, row: f"{rows}+{row}", lambda rows, row: f"{rows}-{row}")


def simulated(records, initial, add, subtract):
    """Of each update: the old row leaves and the new one joins, as one update where that is one group."""
    rows, groups, out = {}, {}, []

    def tell(name, at, leaving, joining):
        aggregate, latest = groups.get(name, (None, None))
        took_part = leaving is None or aggregate is not None
        if leaving is not None and aggregate is not None:
            aggregate = subtract(name, leaving, aggregate)
        if joining is not None:
            aggregate = add(name, joining, initial() if aggregate is None else aggregate)
        at = at if latest is None or not took_part else max(at, latest)
        groups[name] = (aggregate, at)
        out.append((name, str(aggregate), at))

    for key, value, at in records:
        old, rows[key] = rows.get(key), value
        leaving = None if old is None or old[0] == "-" else old
        joining = None if value is None or value[0] == "-" else value
        if leaving and joining and leaving[0] == joining[0]:
            tell(leaving[0], at, leaving, joining)
            continue
        if leaving:
            tell(leaving[0], at, leaving, None)
        if joining:
            tell(joining[0], at, None, joining)
    return out


updates = st.lists(
    st.tuples(st.sampled_from("abc"), st.none() | st.sampled_from(("x1", "x2", "y1", "y2", "-")), st.integers(0, 20)),
    max_size=25,
)


@settings(max_examples=50, deadline=None)
@given(updates)
def test_every_update_is_that_of_the_definition(records):
    counted = simulated(records, int, lambda _, row, n: n + 1, lambda _, row, n: n - 1)
    assert grouped(records, count) == counted
    assert grouped(records, listed) == simulated(records, list, added, removed)


@settings(max_examples=50, deadline=None)
@given(updates)
def test_a_reduce_begins_with_the_first_row(records):
    def add(_, row, rows):
        return row if rows == "" else f"{rows}+{row}"

    assert grouped(records, longest) == simulated(records, str, add, lambda _, row, rows: f"{rows}-{row}")


@settings(max_examples=40, deadline=None)
@given(updates, st.sampled_from((CACHED, UNCACHED)), st.booleans())
def test_what_remains_is_the_aggregate_of_what_remains(records, config, seen_through_a_view):
    rows = [value for value in table_of(records).values() if value != "-"]
    view = (lambda table: table.map_values(str.lower)) if seen_through_a_view else (lambda table: table)
    counts = table_of(grouped(records, count, config, view))
    assert {name: n for name, n in counts.items() if n != "0"} == {
        name: str(sum(row[0] == name for row in rows)) for name in {row[0] for row in rows}
    }


@settings(max_examples=30, deadline=None)
@given(updates)
def test_of_a_versioned_table_the_latest_rows_by_time_are_aggregated(records):
    latest, in_order = {}, []
    for key, value, timestamp in records:
        if latest.get(key, -1) <= timestamp:
            latest[key] = timestamp
            in_order.append((key, value, timestamp))
    assert grouped(records, listed, history=1_000) == grouped(in_order, listed)
