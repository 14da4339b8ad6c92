"""`ordered_bytes`: the order of the bytes is the order of the values, for numbers of all types together."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kstreams.errors import SerdeError
from kstreams.state.rows.ordered_bytes import ordered_bytes

numbers = (
    st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.integers(2**53 - 3, 2**53 + 3)
    | st.floats(allow_nan=False)
    | st.decimals(allow_nan=False, allow_infinity=False, places=3)
    | st.sampled_from([Decimal("0.1"), 0.1, Decimal("1e-400"), 2**60 + 1, float(2**60), 10**300])
)
ORDERED: dict[str, st.SearchStrategy[Any]] = {
    "numbers": numbers,
    "text": st.text(),
    "bytes": st.binary(),
    "dates": st.dates(),
    "times": st.datetimes(),
    "durations": st.timedeltas(),
    "pairs": st.tuples(numbers, st.text()),
    "lists": st.lists(st.integers() | st.floats(allow_nan=False)),
}


@pytest.mark.parametrize("kind", ORDERED)
@given(data=st.data())
@settings(deadline=None)
def test_bytes_are_in_the_order_of_the_values(kind: str, data: st.DataObject) -> None:
    values = sorted(data.draw(st.lists(ORDERED[kind], max_size=8)))
    for lesser, greater in pairwise(values):
        first, other = ordered_bytes(lesser), ordered_bytes(greater)
        assert (first == other) if lesser == greater else (first < other), (lesser, greater)


@pytest.mark.parametrize("kind", ORDERED)
@given(data=st.data())
@settings(deadline=None)
def test_no_value_begins_another(kind: str, data: st.DataObject) -> None:
    one, other = (ordered_bytes(data.draw(ORDERED[kind])) for _ in range(2))
    assert one == other or not other.startswith(one)


def test_a_subtype_is_a_value_of_its_base() -> None:
    class Amount(int):
        pass

    assert ordered_bytes(Amount(3)) == ordered_bytes(3)
    assert ordered_bytes(datetime(2020, 1, 1)) != ordered_bytes(date(2020, 1, 1))


def test_other_values_have_equal_bytes_when_they_are_equal() -> None:
    class Place(msgspec.Struct):
        city: str

    assert ordered_bytes(Place("Rome")) == ordered_bytes(Place("Rome")) != ordered_bytes(Place("Oslo"))
    assert ordered_bytes({"a": 1, "b": 2}) == ordered_bytes({"b": 2, "a": 1})
    with pytest.raises(SerdeError, match="cannot be a member of a group"):
        ordered_bytes(object())
    with pytest.raises(SerdeError, match="308 digits"):
        ordered_bytes(10**400)
    assert ordered_bytes(timedelta(microseconds=-1)) < ordered_bytes(timedelta(0))
