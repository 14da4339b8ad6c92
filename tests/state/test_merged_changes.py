"""Snapshots that are merged from changes: what a column of Arrow cannot hold is refused with an advice."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kstreams.errors import StateError
from kstreams.state import Changes, Stores
from kstreams.state.task_state import merged

TOTALS = Stores.key_value("totals", key=str, value=bytes)


def changes(value: bytes) -> Changes:
    return Changes(pa.array([b"a"]), pa.array([value], pa.binary()), pa.array([0]))


def test_more_than_a_column_holds_is_refused_with_an_advice() -> None:
    parts = [changes(bytes(600)), changes(bytes(600))]
    with pytest.raises(StateError, match=r"'totals' has 1,\d+ bytes .*more partitions"):
        merged(TOTALS, parts, most_bytes=1_000)


def test_up_to_that_it_is_merged() -> None:
    assert merged(TOTALS, [changes(b"1"), changes(b"2")], most_bytes=1_000).values.to_pylist() == [b"2"]
