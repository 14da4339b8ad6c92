"""Serdes: what is written is read back, in Kafka's bytes, and what does not fit says so."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kstreams import Window, Windowed
from kstreams.errors import SerdeError
from kstreams.serdes import SessionWindowedSerde, StringSerde, TimeWindowedSerde, serde_of


class Order(msgspec.Struct):
    item: str
    amount: float


@dataclass
class Point:
    x: int
    y: int | None


VALUES = {
    str: st.text(),
    bytes: st.binary(),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    datetime: st.datetimes(timezones=st.just(UTC)),
    uuid.UUID: st.uuids(),
    Order: st.builds(Order, st.text(), st.floats(allow_nan=False, allow_infinity=False)),
    Point: st.builds(Point, st.integers(-(2**53), 2**53), st.none() | st.integers(0, 9)),
    dict[str, int]: st.dictionaries(st.text(), st.integers(-(2**53), 2**53)),
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
@given(data=st.data())
def test_every_value_is_read_back(kind: Any, data: st.DataObject):
    serde, values = serde_of(kind), data.draw(st.lists(st.none() | VALUES[kind], max_size=20))
    column = serde.encode_rows(values)
    assert column.type == pa.binary()
    assert column.to_pylist() == [None if v is None else serde.serialize(v) for v in values]
    assert serde.decode_rows(column) == values


def test_the_bytes_are_those_of_kafkas_serdes():
    assert serde_of(int).serialize(-2).hex() == "fffffffffffffffe"
    assert serde_of(float).serialize(1.5).hex() == "3ff8000000000000"
    assert serde_of(str).serialize("é") == b"\xc3\xa9"
    windowed = Windowed("k", Window(258, 300))
    assert TimeWindowedSerde(StringSerde(), 42).serialize(windowed).hex() == "6b" + "0000000000000102"
    assert (
        SessionWindowedSerde(StringSerde()).serialize(windowed).hex() == "6b" + "000000000000012c" + "0000000000000102"
    )


@pytest.mark.parametrize(
    "serde", [TimeWindowedSerde(StringSerde(), 42), SessionWindowedSerde(StringSerde())], ids=["time", "session"]
)
def test_windowed_keys_are_read_back(serde):
    windowed = Windowed("key", Window(8, 50))
    assert serde.deserialize(serde.serialize(windowed)) == windowed


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (str, b"\xff"),
        (int, b"123"),
        (float, b""),
        (bool, b"2"),
        (uuid.UUID, b"x"),
        (Order, b'{"item":1}'),
        (Order, b"\xff"),
    ],
)
def test_bytes_that_do_not_decode_are_an_error(kind: Any, data: bytes):
    with pytest.raises(SerdeError, match="is not"):
        serde_of(kind).deserialize(data)


@pytest.mark.parametrize(
    ("kind", "value"), [(str, 3), (int, "3"), (int, 2**63), (float, "x"), (datetime, datetime(2013, 1, 1))]
)
def test_values_that_do_not_fit_are_an_error(kind: Any, value: Any):
    with pytest.raises(SerdeError):
        serde_of(kind).serialize(value)


def test_one_bad_row_of_many_is_an_error():
    with pytest.raises(SerdeError, match="UTF-8"):
        serde_of(str).decode_rows(pa.array([b"fine", b"\xff"], pa.binary()))


def test_a_type_without_serde_is_an_error():
    with pytest.raises(SerdeError, match="no serde"):
        serde_of(complex | bytearray)
