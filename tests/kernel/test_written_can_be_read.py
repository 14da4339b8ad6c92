"""What a serde writes can be read: `deserialize(serialize(x))` is `x`, where NaN equals NaN, or `serialize` refuses."""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import msgspec
import pyarrow as pa
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kstreams.errors import SerdeError
from kstreams.record import Change, Window, Windowed
from kstreams.serdes import (
    ChangeSerde,
    JsonSerde,
    MsgpackSerde,
    Serde,
    SessionWindowedSerde,
    TimeWindowedSerde,
    WindowRowSerde,
    serde_of,
)
from kstreams.serdes.json_columns import JsonColumns
from kstreams.serdes.typed import same_value
from tests.support.examples import examples


class Side(enum.Enum):
    BUY = "buy"
    SELL = "sell"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(NamedTuple):
    x: float
    y: int | None = None


class Stat(msgspec.Struct):
    mean: float
    count: int
    label: str | None = None
    parts: list[float] = []


class Circle(msgspec.Struct, tag=True, frozen=True):
    radius: float


class Square(msgspec.Struct, tag=True, frozen=True):
    side: str


class Short(msgspec.Struct, array_like=True, rename="camel", omit_defaults=True):
    first_part: float = 0.0
    second_part: Side = Side.BUY


@dataclass
class Order:
    item: str
    amount: float
    paid: bool = False
    tags: dict[str, float | None] = field(default_factory=dict)
    where: Point | None = None
    within: Stat | None = None


@dataclass
class Tree:
    value: float
    parts: list[Tree] = field(default_factory=list)


@dataclass
class Rush(Order):
    fee: float = 0.0


@dataclass
class Doubled:
    amount: int

    def __post_init__(self) -> None:
        self.amount = self.amount * 2


class Flight(TypedDict):
    delay: float
    origin: NotRequired[str | None]


class Model(pydantic.BaseModel):
    amount: float
    note: str | None = None
    more: dict[str, Any] = {}
    parts: list[float | None] = pydantic.Field(default=[], alias="all_parts")


FLOATS = st.floats()
TEXTS = st.text(max_size=5)
INTS = st.integers(-(2**70), 2**70) | st.integers(-9, 9)
ZONES = (
    st.none()
    | st.just(dt.UTC)
    | st.timezones()
    | st.builds(dt.timezone, st.timedeltas(-dt.timedelta(hours=23), dt.timedelta(hours=23)))
)
TIMES = st.datetimes(timezones=ZONES)
JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | INTS | FLOATS | st.text(st.characters(), max_size=4) | st.binary(max_size=4) | TIMES
    | st.dates() | st.uuids() | st.decimals(allow_nan=False) | st.sampled_from([*Side, *Level, "buy", "NaN"])
    | st.builds(Point, FLOATS) | st.builds(Stat, FLOATS, INTS) | st.builds(Order, TEXTS, FLOATS) | st.just(object()),
    lambda inner: st.lists(inner, max_size=3)
    | st.lists(inner, max_size=3).map(tuple)
    | st.frozensets(st.integers(0, 9) | TEXTS, max_size=3)
    | st.dictionaries(TEXTS | st.integers(0, 9) | FLOATS, inner, max_size=3),
    max_leaves=4,
)  # fmt: skip

TAGS = st.dictionaries(TEXTS, st.none() | FLOATS, max_size=2)
POINTS = st.builds(Point, FLOATS, st.none() | INTS)
STATS = st.builds(Stat, FLOATS, INTS, st.none() | TEXTS, st.lists(FLOATS, max_size=3))
TREES = st.recursive(
    st.builds(Tree, FLOATS), lambda inner: st.builds(Tree, FLOATS, st.lists(inner, max_size=2)), max_leaves=3
)
OF_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: INTS,
    float: FLOATS,
    bool: st.booleans(),
    bytes: st.binary(max_size=5),
    dt.datetime: TIMES,
    uuid.UUID: st.uuids(),
    Decimal: st.decimals(),
    dt.date: st.dates(),
    dt.time: st.times(timezones=ZONES),
    dt.timedelta: st.timedeltas(),
    Side: st.sampled_from(Side),
    Level: st.sampled_from(Level),
    Literal["a", 1]: st.sampled_from(["a", 1]),
    Any: JUNK,
    Point: POINTS,
    Stat: STATS,
    Circle | Square: st.builds(Circle, FLOATS) | st.builds(Square, TEXTS | st.just("NaN")),
    Short: st.builds(Short, FLOATS, st.sampled_from(Side)),
    Order: st.builds(Order, TEXTS, FLOATS, st.booleans(), TAGS, st.none() | POINTS, st.none() | STATS),
    Tree: TREES,
    Doubled: st.builds(Doubled, st.integers(0, 9)),
    Flight: st.fixed_dictionaries({"delay": FLOATS}, optional={"origin": st.none() | TEXTS}),
    list[int]: st.lists(INTS, max_size=4),
    list[float]: st.lists(FLOATS, max_size=4),
    list[Stat | None]: st.lists(st.none() | STATS, max_size=3),
    tuple[int, float]: st.tuples(INTS, FLOATS),
    tuple[float, ...]: st.lists(FLOATS, max_size=3).map(tuple),
    set[float]: st.sets(FLOATS, max_size=3),
    frozenset[str]: st.frozensets(TEXTS, max_size=3),
    dict[str, float]: st.dictionaries(TEXTS, FLOATS, max_size=3),
    dict[int, list[float]]: st.dictionaries(INTS, st.lists(FLOATS, max_size=2), max_size=2),
    dict[float, int]: st.dictionaries(FLOATS, INTS, max_size=2),
    dict[uuid.UUID, dt.datetime]: st.dictionaries(st.uuids(), TIMES, max_size=2),
    dict[str, Any]: st.dictionaries(TEXTS, JUNK, max_size=3),
    dict: st.dictionaries(TEXTS | INTS, JUNK, max_size=3),
    float | str: FLOATS | TEXTS | st.just("NaN"),
    int | float | None: INTS | FLOATS,
    Annotated[int, msgspec.Meta(gt=0)]: INTS,
}  # fmt: skip
MODELS: dict[Any, st.SearchStrategy[Any]] = {
    Model: st.builds(Model, amount=FLOATS, note=st.none() | TEXTS, more=TAGS, all_parts=st.lists(st.none() | FLOATS)),
    list[Model]: st.lists(st.builds(Model, amount=FLOATS), max_size=2),
}  # fmt: skip
WINDOWS = st.builds(
    lambda start, size: Window(start, start + size), st.integers(0, 2**62), st.just(60) | st.integers(0, 99)
)


def read_back(serde: Serde[Any], value: Any) -> Any:
    return serde.deserialize(serde.serialize(value))


def holds(serde: Serde[Any], value: Any) -> bool:
    """Whether a value is written and read back as it is; False where it is refused. Anything else fails."""
    try:
        data = serde.serialize(value)
    except SerdeError:
        with pytest.raises(SerdeError):
            serde.encode_rows([value] * 9)
        return False
    read = serde.deserialize(data)
    assert same_value(value, read)
    rows = serde.encode_rows([value] * 9)
    assert rows.to_pylist() == [data] * 9
    assert all(same_value(value, row) for row in serde.decode_rows(rows))
    return True


TYPED = st.sampled_from(list(OF_TYPE)).flatmap(lambda kind: st.tuples(st.just(kind), OF_TYPE[kind]))
MODELLED = st.sampled_from(list(MODELS)).flatmap(lambda kind: st.tuples(st.just(kind), MODELS[kind]))
OF_OTHER_TYPES = st.tuples(st.sampled_from([*OF_TYPE, *MODELS]), JUNK)


def hold(typed: tuple[Any, Any]) -> None:
    kind, value = typed
    if value is not None:  # null stays null
        holds(serde_of(kind), value)


@settings(max_examples=examples(450), deadline=None)
@given(typed=TYPED)
def test_a_value_of_a_type_is_read_back_or_refused(typed: tuple[Any, Any]) -> None:
    hold(typed)


@settings(max_examples=examples(150), deadline=None)
@given(typed=TYPED)
def test_messagepack_is_read_back_or_refused(typed: tuple[Any, Any]) -> None:
    kind, value = typed
    if value is not None:
        holds(MsgpackSerde(kind), value)


@settings(max_examples=examples(90), deadline=None)
@given(typed=MODELLED)
def test_a_pydantic_model_is_read_back(typed: tuple[Any, Any]) -> None:
    kind, value = typed
    assert holds(serde_of(kind), value)


@settings(max_examples=examples(450), deadline=None)
@given(typed=OF_OTHER_TYPES)
def test_a_value_of_another_type_is_refused_unless_it_is_read_back_equal(typed: tuple[Any, Any]) -> None:
    hold(typed)


@pytest.mark.slow
@settings(max_examples=6_000, deadline=None)
@given(typed=TYPED | MODELLED | OF_OTHER_TYPES)
def test_no_value_is_written_that_is_not_read_back(typed: tuple[Any, Any]) -> None:
    hold(typed)


def test_bytes_are_no_text_also_where_many_are_written() -> None:
    hold((str, b"text"))
    hold((bytes, "text"))


def test_objects_that_look_like_models_are_refused() -> None:
    with pytest.raises(SerdeError, match="cannot be written"):
        serde_of(list[Model]).serialize([Order("book", 1.5)])


@settings(max_examples=examples(90), deadline=None)
@given(key=TEXTS | INTS, window=WINDOWS)
def test_windowed_keys_are_read_back_or_refused(key: Any, window: Window) -> None:
    inner = serde_of(type(key))
    for serde in (TimeWindowedSerde(inner, 60), SessionWindowedSerde(inner), WindowRowSerde(inner, 60)):
        holds(serde, Windowed(key, window))
    holds(ChangeSerde(inner), Change(key, None))


REST = b'"paid":false,"tags":{},"where":null,"within":null}'
ALWAYS_WRITTEN: list[tuple[Any, Any, bytes]] = [
    (float, math.nan, bytes.fromhex("7ff8000000000000")),
    (Stat, Stat(math.nan, 1), b'{"mean":"NaN","count":1,"label":null,"parts":[]}'),
    (Order, Order("a", math.inf), b'{"item":"a","amount":"Infinity",%s' % REST),
    (Flight, {"delay": -math.inf}, b'{"delay":"-Infinity"}'),
    (list[float], [1.5, math.nan], b'[1.5,"NaN"]'),
    (dict[str, float | None], {"a": math.nan, "b": None}, b'{"a":"NaN","b":null}'),
    (dict[str, Any], {"a": math.nan}, b'{"a":NaN}'),
    (float | str | None, math.inf, b"Infinity"),
    (Model, Model(amount=math.nan), b'{"amount":"NaN","note":null,"more":{},"all_parts":[]}'),
    (Order, Order("a", 2), b'{"item":"a","amount":2,%s' % REST),
    (list[int], [2**64], b"[18446744073709551616]"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "data"), ALWAYS_WRITTEN, ids=lambda part: str(part)[:30])
def test_what_is_written(kind: Any, value: Any, data: bytes) -> None:
    assert serde_of(kind).serialize(value) == data
    assert holds(serde_of(kind), value)


REFUSED: list[tuple[Any, Any]] = [
    (Stat, Stat(None, 1)),  # type: ignore[arg-type]
    (Stat, Stat(1.5, True)),
    (Stat, Stat(1.5, 1, b"text")),  # type: ignore[arg-type]
    (Stat, Stat(2**53 + 1, 1)),
    (Order, Rush("a", 1.5)),
    (Order, Order("a", 1.5, paid=1)),  # type: ignore[arg-type]
    (Flight, {"delay": 1.5, "gate": 3}),
    (Flight, {"origin": "JFK"}),
    (list[int], (1, 2)),
    (list[int], {1, 2}),
    (list[int], [True]),
    (dict[str, Any], {"a": {1: "x"}}),
    (dict[str, Any], {"a": (1, 2)}),
    (Any, dt.datetime(2026, 1, 1)),
    (Annotated[int, msgspec.Meta(gt=0)], -1),
    (Doubled, Doubled(1)),
    (str, "\ud800"),
    (list[str], ["\ud800"]),
    (int, 2**63),
    (float, 2**53 + 1),
    (float, Decimal("0.1")),
    (bool, 2),
    (bool, "yes"),
    (bytes, 5),
    (bytes, "text"),
    (uuid.UUID, "a text"),
    (dt.datetime, dt.datetime(2026, 1, 1)),
    (dt.datetime, dt.date(2026, 1, 1)),
    (Model, Model.model_construct(amount=None)),
]


@pytest.mark.parametrize(("kind", "value"), REFUSED, ids=str)
def test_a_value_that_does_not_fit_is_refused(kind: Any, value: Any) -> None:
    assert not holds(serde_of(kind), value)


def test_the_error_names_the_field() -> None:
    with pytest.raises(SerdeError, match=r"does not fit Stat: Expected `float`, got `null` - at `\$.mean`"):
        serde_of(Stat).serialize(Stat(None, 1))  # type: ignore[arg-type]
    with pytest.raises(SerdeError, match=r"\(1, 2\) does not fit list\[int\]: it would be read back as \[1, 2\]"):
        serde_of(list[int]).serialize((1, 2))


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_the_forms_of_other_writers_are_read(word: str, quote: str) -> None:
    number, form = float(word), f"{quote}{word}{quote}"
    assert same_value(Stat(number, 1), serde_of(Stat).deserialize(f'{{"mean": {form}, "count": 1}}'.encode()))
    assert same_value([number, None], serde_of(list[float | None]).deserialize(f"[{form}, null]".encode()))
    assert same_value(Model(amount=number), serde_of(Model).deserialize(f'{{"amount": {form}}}'.encode()))
    assert same_value(number if not quote else word, serde_of(float | str).deserialize(form.encode()))


@given(st.lists(STATS | st.none(), max_size=20))
def test_what_pythons_json_writes_is_read(values: list[Any]) -> None:
    raw = [None if value is None else json.dumps(msgspec.to_builtins(value)).encode() for value in values]
    assert same_value(values, JsonSerde(Stat).decode_rows(pa.array(raw, pa.binary())))


@given(st.lists(STATS | st.none(), max_size=20))
def test_columns_hold_what_rows_hold_or_leave_them_to_rows(values: list[Any]) -> None:
    column = serde_of(Stat).encode_rows(values)
    try:
        means = JsonColumns(Stat, ["mean"]).decode(column)["mean"].to_pylist()
    except SerdeError:  # the record path reads them
        assert any(value is not None and not math.isfinite(value.mean) for value in values)
        return
    assert same_value([None if value is None else value.mean for value in values], means)


COLUMNS: dict[Any, st.SearchStrategy[Any]] = {
    kind: OF_TYPE[kind] | JUNK for kind in (str, int, float, bool, bytes, dt.datetime)
}


@pytest.mark.parametrize("kind", COLUMNS, ids=str)
@settings(max_examples=examples(45), deadline=None)
@given(data=st.data())
def test_a_column_agrees_with_rows(kind: Any, data: st.DataObject) -> None:
    serde, values = serde_of(kind), data.draw(st.lists(st.none() | COLUMNS[kind], max_size=4))
    try:
        rows = [None if value is None else serde.serialize(value) for value in values]
    except SerdeError:
        with pytest.raises(SerdeError):
            serde.encode_rows(values)
        return
    assert serde.encode_rows(values).to_pylist() == rows
    assert serde.encode_column(serde.decode_column(pa.array(rows, pa.binary()))).to_pylist() == rows


@pytest.mark.parametrize("kind", COLUMNS, ids=str)
@settings(max_examples=examples(45), deadline=None)
@given(
    raw=st.lists(
        st.binary(max_size=9) | st.binary(min_size=8, max_size=8) | st.sampled_from([b"\0", b"\1"]), max_size=3
    )
)
def test_bytes_that_rows_refuse_no_column_takes(kind: Any, raw: list[bytes]) -> None:
    serde, column = serde_of(kind), pa.array(raw, pa.binary())
    try:
        values = [serde.deserialize(data) for data in raw]
    except SerdeError:
        with pytest.raises((SerdeError, pa.ArrowException)):
            serde.decode_column(column)
        with pytest.raises(SerdeError):
            serde.decode_rows(column)
        return
    assert same_value(values, serde.decode_column(column).to_pylist())
    assert same_value(values, serde.decode_rows(column))
