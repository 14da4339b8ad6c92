"""Whole columns of keys get the partitions that single keys get."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kstreams.kernel.murmur2 import partition_of
from kstreams.log.partitioning import partitions_of, split_by_partition

KEYS = st.lists(st.none() | st.binary(max_size=70), max_size=40)


@given(KEYS, st.integers(1, 50), st.data())
def test_a_column_agrees_with_the_function_of_a_key(keys: list[bytes | None], count: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(keys)))
    stop = data.draw(st.integers(start, len(keys)))
    column = pa.array(keys, pa.binary()).slice(start, stop - start)
    expected = [-1 if key is None else partition_of(key, count) for key in keys[start:stop]]
    assert partitions_of(column, count).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 4), st.binary(max_size=5)), max_size=30))
def test_a_split_keeps_order_and_places(rows: list[tuple[int, bytes]]) -> None:
    column = pa.array([value for _, value in rows], pa.binary())
    times = pa.array(range(len(rows)), pa.int64())
    chosen = np.array([partition for partition, _ in rows], dtype=np.int64)
    found = {}
    for batch, places in split_by_partition("t", chosen, column, column, times, None):
        assert batch.timestamps.to_pylist() == places.tolist()
        found[batch.source.partition] = batch.values.to_pylist()
    assert found == {p: [value for q, value in rows if q == p] for p in {p for p, _ in rows}}
