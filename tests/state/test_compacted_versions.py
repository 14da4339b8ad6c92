"""The changelog of a versioned store, compacted at any moment: the store that is restored from it is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.state import Stores, VersionedRecord, open_task_state
from kstreams.state.api import Changes
from kstreams.state.task_state import merged

Rows = list[tuple[bytes, bytes | None, int]]

HISTORY = 20
BUILDER = Stores.versioned("prices", HISTORY, key=str, value=int)
KEYS = ("a", "b", "c")
PUTS = st.tuples(st.sampled_from(KEYS), st.none() | st.integers(0, 9), st.integers(0, 90))
COMMITS = st.lists(st.lists(PUTS, max_size=6), min_size=1, max_size=6)


def versions(store: Any) -> dict[str, list[VersionedRecord]]:
    """What a store holds that can be asked for."""
    times = range(store.observed_ms - HISTORY, store.observed_ms + 1)
    return {key: [store.get(key), *(store.get(key, time) for time in times)] for key in KEYS}


def restored(rows: Rows) -> Any:
    state = open_task_state([BUILDER])
    if rows:
        state.restore("prices", Batch(TopicPartition("t", 0), np.arange(len(rows)), *columns(rows)))
    return state.stores["prices"]


def columns(rows: Rows) -> Changes:
    keys, values, times = zip(*rows, strict=True)
    return Changes(pa.array(keys, pa.binary()), pa.array(values, pa.binary()), pa.array(times, pa.int64()))


def compacted(rows: Rows, horizon: int) -> Rows:
    """Of each key the last record; without deletions before the horizon, which are let go after a while."""
    last = {row[0]: at for at, row in enumerate(rows)}
    return [row for at, row in enumerate(rows) if last[row[0]] == at and (row[1] is not None or at >= horizon)]


def commits_of(store: Any, commits: list[list[Any]]) -> list[Rows]:
    found = []
    for puts in commits:
        for key, value, time in puts:
            store.put(key, value, time)
        found.append(list(zip(*(column.to_pylist() for column in store.changes(7)), strict=True)))
        store.written()
    return found


def in_kafka_streams_form(store: Any, commits: list[list[Any]]) -> Rows:
    """What Kafka Streams writes for these puts: of those that the store takes."""
    rows: Rows = []
    for puts in commits:
        for key, value, time in puts:
            if store.put(key, value, time) != -(2**63):
                rows.append((key.encode(), None if value is None else value.to_bytes(8, "big"), time))
        store.changes(7)
        store.written()
    return rows


@given(COMMITS, st.integers(0, 80))
def test_compaction_takes_no_version_that_may_be_asked_for(commits: list[list[Any]], horizon: int) -> None:
    store = open_task_state([BUILDER]).stores["prices"]
    rows = [row for commit in commits_of(store, commits) for row in commit]
    again = restored(compacted(rows, horizon))
    again.observe(store.observed_ms)
    assert versions(again) == versions(store)


@given(COMMITS, COMMITS)
def test_what_kafka_streams_has_written_is_read_and_gone_on_from(
    before: list[list[Any]], after: list[list[Any]]
) -> None:
    """No deletion is let go: a broker does so only when it has compacted all that lies before it, too."""
    old = in_kafka_streams_form(open_task_state([BUILDER]).stores["prices"], before)
    store = restored(old)
    new = [row for commit in commits_of(store, after) for row in commit]
    again = restored(old + compacted(new, 0))
    again.observe(store.observed_ms)
    assert versions(again) == versions(store)


@pytest.mark.parametrize("form", [compacted, lambda rows, horizon: rows], ids=["compacted", "whole"])
def test_a_key_that_is_gone_does_not_come_back_from_an_older_record(form: Callable[[Rows, int], Rows]) -> None:
    store = restored([(b"a", (1).to_bytes(8, "big"), 1)])
    new = commits_of(store, [[("a", None, 5)], [("b", 1, 60)]])
    rows: Rows = [(b"a", (1).to_bytes(8, "big"), 1), *new[0], *new[1]]
    assert restored(form(rows, len(rows))).get("a") is None


@given(COMMITS, st.integers(0, 6))
def test_a_snapshot_is_what_compaction_would_leave(commits: list[list[Any]], cut: int) -> None:
    store = open_task_state([BUILDER]).stores["prices"]
    parts = [columns(rows) for rows in commits_of(store, commits) if rows]
    if parts:
        snapshot = merged(BUILDER, [merged(BUILDER, parts[: cut + 1]), *parts[cut + 1 :]])
        again = restored(list(zip(*(column.to_pylist() for column in snapshot), strict=True)))
        again.observe(store.observed_ms)
        assert versions(again) == versions(store)
