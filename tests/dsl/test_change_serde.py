"""Changes on their way through a repartition topic keep both values and whether they are the latest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import SerdeError
from kstreams.serdes import ChangeSerde, StringSerde

serde = ChangeSerde(StringSerde())
values = st.none() | st.text(max_size=5)


@given(values, values, st.booleans())
def test_a_change_comes_back_as_it_was(new, old, is_latest):
    if new is None and old is None:
        return  # nothing is forwarded then
    change = ks.Change(new, old, is_latest)
    assert serde.deserialize(serde.serialize(change)) == change


@pytest.mark.parametrize("data", [b"", b"\x09", b"\x00\x02", b"\x00\x00\x00\x09ab\x02"])
def test_damaged_bytes_are_refused(data):
    with pytest.raises(SerdeError, match="a change"):
        serde.deserialize(data)
