"""Sessions: what they are by definition, what is emitted as they grow and merge, and what is too late for them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams import expressions as ex
from kstreams.errors import TopologyError
from kstreams.testing import TopologyTestDriver
from tests.dsl.driven import UNCACHED, run
from tests.windows.aggregating import ON_CLOSE, ON_UPDATE, counts, few, latest, records_of, windowed, written

rows_ = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 60)), max_size=25)
some_of_nothing = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xz"), st.integers(0, 60)), max_size=25)
gaps = st.integers(1, 8)


def rows_at(*times, key="k"):
    return [(key, "v", time) for time in times]


def traced(windows, emit=ON_UPDATE, materialized=None):
    """Every session shows its values in the order in which they were taken in, with merges in parentheses.

    With a "z" alone a session is nothing.
    """
    builder, stream = windowed(windows, emit)
    add = lambda key, value, trace: f"{trace}{value}" if trace or value != "z" else None  # noqa: E731
    merger = lambda key, a, b: f"{a}({b})"  # noqa: E731
    written(stream.aggregate(str, add, merger=merger, value=str, materialized=materialized))
    return builder


def simulated(rows, gap, grace, cached):
    """The updates of `traced`: a few lines for what the operator does over a store, or over a cache in front of it.

    `observed` is the greatest end that the store was told of: what ended too long before that, it does not find. The
    cache finds it; but what a session held, it asks the store, and tells it nothing where that was nothing and is so.
    """
    sessions, out, stream_time, observed = {}, [], -1, -1
    for key, value, time in rows:
        stream_time = max(stream_time, time)
        near = sorted(
            (end, start) for k, start, end in sessions if k == key and time - gap <= end and start <= time + gap
        )
        near = [(end, start) for end, start in near if cached or end > observed - gap - grace]
        start, end = min([time, *(s for _, s in near)]), max([time, *(e for e, _ in near)])
        if end < stream_time - gap - grace:
            continue
        trace = "".join(f"({sessions[key, s, e]})" for e, s in near)
        for e, s in near:
            del sessions[key, s, e]
            stays = (s, e) == (time, time) or (cached and (s, e) == (start, end))
            if not stays and not (cached and e <= observed - gap - grace):
                out.append((f"{key}@{s}/{e}", None, e))
        if trace or value != "z":
            sessions[key, start, end] = f"{trace}{value}"
        elif cached:
            continue
        else:
            sessions.pop((key, start, end), None)  # one that had ended too long ago is replaced by nothing
        observed = max(observed, end)
        out.append((f"{key}@{start}/{end}", sessions.get((key, start, end)), end))
    return out


@settings(max_examples=100, deadline=None)
@example([("a", "x", 45), ("a", "x", 52), ("a", "z", 45)], 1, 6, False)
@given(some_of_nothing, gaps, st.integers(0, 20), st.booleans())
def test_updates_agree_with_a_simulation(rows, gap, grace, cached):
    updates = run(traced(ks.SessionWindows(gap=gap, grace=grace)), rows, {} if cached else UNCACHED)
    assert updates == simulated(rows, gap, grace, cached)


def test_with_the_cache_a_session_of_nothing_lets_no_other_expire():
    """What never was, Kafka Streams' cache does not tell the store: c@550/568 is still found when it is merged."""
    builder, stream = windowed(ks.SessionWindows(gap=30, grace=20))
    written(stream.reduce(lambda a, b: b))
    rows = [("c", "x", 550), ("c", "x", 568), ("d", None, 631), ("c", "y", 597)]
    assert run(builder, rows)[-2:] == [("c@550/568", None, 568), ("c@550/597", "y", 597)]


def test_on_close_there_is_no_cache_and_a_session_of_nothing_lets_others_expire():
    builder, stream = windowed(ks.SessionWindows(gap=15, grace=50), ON_CLOSE)
    stream.reduce(lambda a, b: b, materialized="store")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for value, time in (("x", 4657), ("y", 4710), (None, 4727)):
            topic.pipe_input("k", value, time)
        assert [session.window.end_ms for session, _ in driver.get_session_store("store").all()] == [4710]


@few
@given(rows_, gaps, st.sampled_from([ON_CLOSE, ON_UPDATE]))
def test_sessions_are_what_lies_within_the_gap_in_whatever_order_it_comes(rows, gap, emit):
    expected = {}
    for key in "ab":
        times = sorted(time for k, _, time in rows if k == key)
        cuts = [0, *(i + 1 for i, (one, next_) in enumerate(pairwise(times)) if next_ - one > gap), len(times)]
        for first, last in pairwise(cuts):
            if last > first:
                expected[f"{key}@{times[first]}/{times[last - 1]}"] = last - first
    assert latest(counts(ks.SessionWindows(gap=gap, grace=100), rows, emit)) == expected


@few
@example([("a", "x", 51), ("a", "x", 60), ("a", "x", 46)], 5, 4)
@given(rows_, gaps, st.integers(0, 20))
def test_on_close_every_session_comes_once_as_the_last_update_left_it(rows, gap, grace):
    """Where the store of the updates finds a session until it is closed: by default it loses it a moment before."""
    windows, kept = ks.SessionWindows(gap=gap, grace=grace), ks.Materialized("sessions", retention=gap + grace + 1)
    finals = run(traced(windows, ON_CLOSE), rows, UNCACHED)
    updates = run(traced(windows, materialized=kept), rows, UNCACHED)
    assert {key: value for key, value, _ in finals} == latest(updates)
    assert len({key for key, *_ in finals}) == len(finals)


@few
@given(rows_, gaps, st.integers(0, 20))
def test_with_the_record_cache_the_same_sessions_are_left(rows, gap, grace):
    windows = ks.SessionWindows(gap=gap, grace=grace + 100)
    assert latest(counts(windows, rows, config=None)) == latest(counts(windows, rows))


def test_a_record_between_two_sessions_makes_them_one():
    assert counts(ks.SessionWindows(gap=5, grace=10), rows_at(0, 10, 5)) == [
        ("k@0/0", 1, 0),
        ("k@10/10", 1, 10),
        ("k@0/0", None, 0),
        ("k@10/10", None, 10),
        ("k@0/10", 3, 10),
    ]


def test_a_session_takes_records_until_gap_and_grace_have_passed_since_its_end():
    late, in_time = rows_at(20, 14), rows_at(20, 15)
    assert counts(ks.SessionWindows(gap=5), late) == [("k@20/20", 1, 20)]
    assert ("k@15/20", 2, 20) in counts(ks.SessionWindows(gap=5), in_time)


def test_a_late_record_that_touches_a_live_session_is_in_time():
    rows = [*rows_at(0, 4, 8, key="a"), *rows_at(12, key="b"), *rows_at(3, key="a")]
    assert counts(ks.SessionWindows(gap=5), rows)[-1] == ("a@0/8", 4, 8)


def test_a_record_at_the_same_instant_deletes_nothing():
    assert counts(ks.SessionWindows(gap=5), rows_at(3, 3)) == [("k@3/3", 1, 3), ("k@3/3", 2, 3)]


def test_null_keys_are_dropped_and_null_values_count():
    assert counts(ks.SessionWindows(gap=5), [(None, "v", 1), ("k", None, 2)]) == [("k@2/2", 1, 2)]


def test_updates_have_no_headers_and_final_results_those_of_the_record_that_closes():
    records = [ks.Record(key="k", value="v", timestamp=time, headers=[("n", b"%d" % time)]) for time in (0, 10)]
    builder, stream = windowed(ks.SessionWindows(gap=5))
    written(stream.count())
    assert [list(record.headers) for record in records_of(builder, records, value=int)] == [[], []]
    builder, stream = windowed(ks.SessionWindows(gap=5), ON_CLOSE)
    written(stream.count())
    assert [list(record.headers) for record in records_of(builder, records, value=int)] == [[("n", b"10")]]


def test_with_the_record_cache_an_update_has_the_headers_of_its_record():
    builder, stream = windowed(ks.SessionWindows(gap=5))
    written(stream.count())
    record = ks.Record(key="k", value="v", timestamp=0, headers=[("n", b"0")])
    (update,) = records_of(builder, [record], {}, value=int)
    assert list(update.headers) == [("n", b"0")]


def test_values_of_sessions_that_become_one_are_reduced():
    builder, stream = windowed(ks.SessionWindows(gap=5, grace=10))
    written(stream.reduce(lambda a, b: f"{a}{b}"))
    rows = [("k", "a", 0), ("k", "c", 8), ("k", "b", 4)]
    assert run(builder, rows, UNCACHED)[-1] == ("k@0/8", "acb", 8)


@few
@given(rows_, gaps)
def test_named_expressions_of_merged_sessions_agree_with_functions(rows, gap):
    builder, stream = windowed(ks.SessionWindows(gap=gap, grace=100))
    fields = {"n": ex.len(), "least": ex.value.min(), "latest": ex.timestamp.max(), "mean": ex.timestamp.mean()}
    written(stream.aggregate(**fields, value=dict))
    found = latest(run(builder, rows, UNCACHED, value=dict))
    for session, row in found.items():
        key, start, end = session[0], *map(int, session[2:].split("/"))
        inside = [(value, time) for k, value, time in rows if k == key and start <= time <= end]
        times = [time for _, time in inside]
        assert row["n"] == len(inside)
        assert row["least"] == min(value for value, _ in inside)
        assert row["latest"] == max(times)
        assert row["mean"] == pytest.approx(sum(times) / len(times))


def test_functions_need_a_merger():
    _, stream = windowed(ks.SessionWindows(gap=5))
    with pytest.raises(TopologyError, match="needs merger="):
        stream.aggregate(int, lambda key, value, n: n + 1)


def test_a_retention_below_gap_and_grace_is_refused():
    _, stream = windowed(ks.SessionWindows(gap=5, grace=10))
    with pytest.raises(TopologyError, match="15 ms at least"):
        stream.count(ks.Materialized("store", retention=14))


def test_a_table_of_sessions_can_be_grouped_anew():
    """The tombstone of a session that was merged takes its old aggregate out of the group."""
    builder, stream = windowed(ks.SessionWindows(gap=5, grace=10))
    sessions = stream.count().group_by(lambda session, n: (session.key, n), key=str, value=int)
    sessions.reduce(lambda a, b: a + b, lambda a, b: a - b).to_stream().to("out")
    assert run(builder, rows_at(0, 10, 5), UNCACHED, value=int)[-1] == ("k", 3, 10)


@pytest.mark.parametrize("store", ["rocksdb", "memory"])
def test_what_closes_is_emitted_from_stores_of_both_kinds(store):
    builder, stream = windowed(ks.SessionWindows(gap=5), ON_CLOSE)
    written(stream.count(ks.Materialized("store", store=store)))
    assert run(builder, rows_at(0, 3, 10, 100), UNCACHED, value=int) == [
        ("k@0/3", 2, 3),
        ("k@10/10", 1, 10),
        ("k@100/100", 1, 100),
    ]
