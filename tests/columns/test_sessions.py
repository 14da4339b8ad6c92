"""Aggregations by session in columns: runs of records become sessions, and nobody can see that they were runs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.kernel.batch import Batch, Row
from kstreams.processor.operators.session import columns as session_target
from kstreams.processor.task.columns.region import Region
from tests.columns.both_paths import assert_same, cut, reason
from tests.columns.test_same_results import Order, aggregates, commits, cuts, values
from tests.support.examples import examples

keys = st.sampled_from([b"a", b"b", b"c"])
steps = st.lists(
    st.tuples(keys, values, st.sampled_from([0, 0, 1, 2, 4, 5, 6, 11, 40, -3, -9])), min_size=1, max_size=40
)


def rows_of(steps: list[Any]) -> list[Row]:
    """Rows whose times mostly rise."""
    at, rows = 20, []
    for key, value, later in steps:
        at = max(0, at + later)
        rows.append(Row(key, value, at, ()))
    return rows


def topology(grace: int, fields: Any, **settings: Any) -> ks.Topology:
    builder = ks.StreamsBuilder({"default.dsl.store": "in_memory"})
    sessions = (
        builder.stream("in", key=str, value=Order).group_by_key().windowed_by(ks.SessionWindows(gap=5, grace=grace))
    )
    if "emit" in settings:
        sessions = sessions.emit_strategy(settings["emit"])
    table = sessions.count() if fields is None else sessions.aggregate(**fields)
    table.to_stream().map(lambda key, value: (str(key), str(value))).to("out", key=str, value=str)
    return builder.build()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each batch of a region, whether it went through columns."""
    found: list[bool] = []
    process = Region.process

    def watched(region: Region, batch: Batch) -> bool:
        found.append(process(region, batch))
        return found[-1]

    monkeypatch.setattr(Region, "process", watched)
    return found


@given(steps=steps, aggregates=aggregates, grace=st.sampled_from([0, 5, 50]), cuts=cuts, commits=commits)
@settings(max_examples=examples(400))
def test_an_aggregation_by_session_emits_and_keeps_the_same(
    steps: Any, aggregates: Any, grace: int, cuts: Any, commits: Any
) -> None:
    fields = {f"f{at}": expr for at, expr in enumerate(aggregates)}
    assert_same(lambda: topology(grace, fields), cut(rows_of(steps), cuts), commits)


@given(steps=steps, grace=st.sampled_from([0, 5, 50]), cuts=cuts, commits=commits)
@settings(max_examples=examples(200))
def test_a_count_by_session_emits_and_keeps_the_same(steps: Any, grace: int, cuts: Any, commits: Any) -> None:
    assert_same(lambda: topology(grace, None), cut(rows_of(steps), cuts), commits)


def row(key: bytes, at: int) -> Row:
    return Row(key, b'{"shop":"x","amount":1,"price":1.0,"paid":true}', at, ())


def test_a_session_goes_on_in_the_next_batch_and_swallows_others(taken: list[bool]) -> None:
    batches = [[row(b"a", 10), row(b"a", 12)], [row(b"a", 21), row(b"b", 21)], [row(b"a", 16), row(b"a", 17)]]
    seen = assert_same(lambda: topology(50, None), batches, [True, True, True])
    assert [(written[0].decode().split("window=")[1][:-1], written[1]) for written in seen.outputs["out"]] == [
        ("Window(start_ms=10, end_ms=12)", b"2"),
        ("Window(start_ms=21, end_ms=21)", b"1"),
        ("Window(start_ms=21, end_ms=21)", b"1"),
        ("Window(start_ms=10, end_ms=12)", b"None"),
        ("Window(start_ms=21, end_ms=21)", b"None"),
        ("Window(start_ms=10, end_ms=21)", b"5"),
    ]
    assert taken == [True] * 3 + [False] * 3


def test_late_records_take_the_record_path(taken: list[bool]) -> None:
    assert_same(lambda: topology(0, None), [[row(b"a", 50), row(b"b", 10)]])
    assert not any(taken)


def test_short_runs_are_not_worth_it(taken: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_target, "MAX_RUNS_PER_ROW", 1 / 2)
    assert_same(lambda: topology(50, None), [[row(b"a", 10), row(b"b", 10), row(b"c", 12)]])
    assert not any(taken)


def test_sessions_that_are_emitted_at_their_close_go_record_by_record() -> None:
    assert "closes sessions" in (reason(topology(0, None, emit=ks.EmitStrategy.ON_WINDOW_CLOSE)) or "")
