"""Columns of keys and values hold what rows hold, and give back the same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NotRequired, TypedDict

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kstreams.errors import SerdeError
from kstreams.serdes import JsonSerde, serde_of
from kstreams.serdes.json_columns import JsonColumns

OF_TYPE: dict[type, st.SearchStrategy[Any]] = {
    str: st.text(st.characters(codec="utf-8")),
    bytes: st.binary(),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    datetime: st.datetimes(timezones=st.just(UTC)),
}


@given(
    st.sampled_from(list(OF_TYPE)).flatmap(lambda kind: st.tuples(st.just(kind), st.lists(st.none() | OF_TYPE[kind])))
)
def test_a_column_is_decoded_and_encoded_as_its_rows_are(typed: tuple[type, list[Any]]) -> None:
    kind, values = typed
    serde = serde_of(kind)
    raw = serde.encode_rows(values)
    column = serde.decode_column(raw)
    assert column.type == serde.arrow_type
    assert column.to_pylist() == serde.decode_rows(raw) == values
    assert serde.encode_column(column).equals(raw)
    assert serde.decode_column(raw.slice(1)).to_pylist() == values[1:]


@pytest.mark.parametrize(("kind", "raw"), [(str, b"\xff"), (int, b"123"), (float, b""), (bool, b"\x02")])
def test_bytes_that_do_not_decode_are_an_error_not_a_value(kind: type, raw: bytes) -> None:
    with pytest.raises((SerdeError, pa.ArrowException)):
        serde_of(kind).decode_column(pa.array([raw], pa.binary()))


class AsStruct(msgspec.Struct, rename={"amount": "a-m"}):
    amount: int
    note: str | None = "none"
    parts: list[int] = []


@dataclass
class AsDataclass:
    amount: int
    note: str | None = "none"


class AsTypedDict(TypedDict):
    amount: int
    note: NotRequired[str | None]


@pytest.mark.parametrize(
    ("kind", "raw", "amounts", "notes"),
    [
        (AsStruct, [b'{"a-m":1,"parts":[1]}', None, b'{"a-m":2,"note":null}'], [1, None, 2], ["none", None, None]),
        (AsDataclass, [b'{"amount":1,"x":0}', b'{"amount":2,"note":"y"}'], [1, 2], ["none", "y"]),
        (AsTypedDict, [b'{"amount":1}', b'{"note":"y", "amount":2} '], [1, 2], [None, "y"]),
    ],
)
def test_fields_of_json_are_read_without_the_rest(kind: Any, raw: list[Any], amounts: Any, notes: Any) -> None:
    columns = JsonColumns(kind, ["amount", "note"]).decode(pa.array(raw, pa.binary()))
    assert columns["amount"].to_pylist() == amounts
    assert columns["note"].to_pylist() == notes


@pytest.mark.parametrize(
    "raw",
    [
        [b'{"amount":1}', b"{"],
        [b'{"amount":1}\n{"amount":2}'],
        [b'{"amount":1}\n{"amount":2}', b""],
        [b'{"amount":1} {"amount":2}', b" "],
        [b'{"amount":1} {"amount":2}', b""],
        [b'{"note":', b'{"amount":1},"amount":1}', b'{"amount":1}{"amount":2}'],
        [b'{"amount":"1"}'],
        [b'{"note":"no amount"}'],
        [b'{"amount":9223372036854775808}'],
        [b"null"],
        [b""],
    ],
)
def test_what_rows_would_refuse_or_columns_cannot_hold_is_an_error(raw: list[bytes]) -> None:
    with pytest.raises(SerdeError):
        JsonColumns(AsDataclass, ["amount"]).decode(pa.array(raw, pa.binary()))


@given(st.lists(st.none() | st.dictionaries(st.sampled_from("abc"), st.integers(-9, 9))))
def test_columns_of_json_hold_what_its_rows_hold(values: list[Any]) -> None:
    serde = JsonSerde(dict[str, int])
    columns = JsonColumns(serde.type, ["a", "b"]).decode(serde.encode_rows(values))
    for name, column in columns.items():
        assert column.to_pylist() == [None if value is None else value.get(name) for value in values]


class Whole(msgspec.Struct, forbid_unknown_fields=True):
    amount: int


class Checked(msgspec.Struct):
    amount: int

    def __post_init__(self) -> None:
        self.amount += 1


@pytest.mark.parametrize(
    ("kind", "field", "why"),
    [
        (Whole, "amount", "forbids unknown fields"),
        (Checked, "amount", "__post_init__"),
        (AsStruct, "parts", "no columnar form"),
        (AsStruct, "other", "has no field"),
        (list[int], "x", "no named fields"),
    ],
)
def test_types_that_only_rows_can_read_say_why(kind: Any, field: str, why: str) -> None:
    with pytest.raises(SerdeError, match=why):
        JsonColumns(kind, [field])


OBJECTS = [b'{"amount":%d,"note":"n%d"}' % (n, n) for n in range(20)]


def test_many_json_values_are_read_and_written_as_one_by_one() -> None:
    serde = JsonSerde(AsDataclass)
    values = [serde.deserialize(data) for data in OBJECTS]
    column = pa.array([*OBJECTS, None, *OBJECTS], pa.binary())
    assert serde.decode_rows(column) == [*values, None, *values]
    assert serde.decode_rows(column.slice(5, 12)) == values[5:17]
    assert serde.encode_rows(values).to_pylist() == list(map(serde.serialize, values))
    assert serde.encode_rows([*values, None]).to_pylist() == [*map(serde.serialize, values), None]


@pytest.mark.parametrize("broken", [[b'{"note":', b'{"amount":1},"amount":1}', b'{"amount":1}{"amount":2}'], [b"{"]])
def test_a_json_value_among_many_that_does_not_decode_is_an_error(broken: list[bytes]) -> None:
    with pytest.raises(SerdeError, match="is not JSON"):
        JsonSerde(AsDataclass).decode_rows(pa.array([*OBJECTS, *broken], pa.binary()))


def test_a_value_among_many_that_json_cannot_write_is_an_error() -> None:
    with pytest.raises(SerdeError, match="cannot be written as JSON"):
        JsonSerde(Any).encode_rows([{"a": n} for n in range(20)] + [{"a": object()}])


def test_json_that_a_value_holds_as_it_is_may_have_newlines() -> None:
    values = [msgspec.Raw(b'{"a":\n1}')] * 20
    assert JsonSerde(Any).encode_rows(values).to_pylist() == [b'{"a":\n1}'] * 20


def test_a_subclass_writes_and_reads_each_value_in_its_own_way() -> None:
    class Spaced(JsonSerde):
        def serialize(self, value: Any) -> bytes:
            return super().serialize(value).replace(b":", b": ")

    assert Spaced(Any).encode_rows([{"a": 1}] * 20).to_pylist() == [b'{"a": 1}'] * 20


def test_a_field_with_a_default_may_be_read_before_one_without() -> None:
    class Trade(msgspec.Struct):
        symbol: str
        size: int | None = None

    raw = pa.array([b'{"symbol":"A","size":2}', b'{"symbol":"B"}'], pa.binary())
    columns = serde_of(Trade).field_columns(["size", "symbol"]).decode(raw)
    assert {name: column.to_pylist() for name, column in columns.items()} == {"size": [2, None], "symbol": ["A", "B"]}
