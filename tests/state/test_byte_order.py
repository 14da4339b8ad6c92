"""Sorting and holding byte strings in unsigned order."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kstreams.state.rows.byte_columns import last_of_each
from kstreams.state.rows.sorted_keys import SortedKeys

BYTES = st.binary(max_size=12) | st.binary(max_size=4).map(lambda tail: b"prefix-" + tail)
SHORT = st.lists(st.sampled_from([b"\x00", b"a", b"\xff"]), max_size=5).map(b"".join)


@given(st.lists(BYTES | SHORT) | st.lists(SHORT.map(lambda tail: b"k" + tail), min_size=1))
def test_last_of_each_key_in_order(keys: list[bytes]) -> None:
    last = {key: place for place, key in enumerate(keys)}
    assert last_of_each(pa.array(keys, pa.binary())).to_pylist() == [last[key] for key in sorted(last)]


@given(st.lists(SHORT), st.lists(st.tuples(st.booleans(), SHORT)), SHORT, st.none() | SHORT)
def test_sorted_keys_are_a_sorted_set(
    first: list[bytes], steps: list[tuple[bool, bytes]], low: bytes, high: bytes | None
) -> None:
    keys, model = SortedKeys(first), set(first)
    for add, key in steps:
        (keys.add if add else keys.discard)(key)
        (model.add if add else model.discard)(key)
    assert keys.between(low, high) == sorted(key for key in model if key >= low and (high is None or key < high))


def test_sorted_keys_split_when_they_grow() -> None:
    keys = SortedKeys()
    numbers = [n * 7919 % 10_007 for n in range(10_007)]
    for number in numbers:
        keys.add(number.to_bytes(2, "big"))
    assert keys.between(b"", None) == [n.to_bytes(2, "big") for n in range(10_007)]
    assert keys.between((5_000).to_bytes(2, "big"), (5_003).to_bytes(2, "big"))[1] == (5_001).to_bytes(2, "big")
