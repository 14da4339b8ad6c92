"""The functions and columns of programs: they read and compute what the native engine reads and computes."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
import pyarrow as pa
import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.expressions import Expr, Schema, as_function
from kstreams.runtime.spark.code.columns import column_of, stored_term
from kstreams.runtime.spark.code.functions_of_programs import SOURCES
from kstreams.runtime.spark.code.json_types import json_type_of
from kstreams.runtime.spark.code.program import program_of
from kstreams.runtime.spark.code.unsayable import Unsayable
from kstreams.serdes import serde_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]


class Inner(msgspec.Struct, frozen=True):
    name: str
    size: int | None = None


class Stage(msgspec.Struct, frozen=True):
    at: datetime | None


class Everything(msgspec.Struct, frozen=True):
    whole: int
    fraction: float
    text: str
    flag: bool
    day: date
    data: bytes
    numbers: list[int]
    counts: dict[str, int]
    inner: Inner
    perhaps: Inner | None = None
    many: list[Inner] | None = None
    time: datetime | None = None
    zoned: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    naive: Annotated[datetime, msgspec.Meta(tz=False)] | None = None
    times: list[datetime] | None = None
    stages: dict[str, Stage] | None = None
    stage: Stage | None = None
    price: Decimal | None = None
    kind: Literal["big", "small"] | None = None


GOOD = {
    "whole": 1,
    "fraction": 2.5,
    "text": 'é "\\ \n',
    "flag": True,
    "day": "2024-02-29",
    "data": "AAE=",
    "numbers": [1, 2],
    "counts": {"a": 1},
    "inner": {"name": "x"},
}
ACCEPTED: list[Any] = [
    GOOD,
    GOOD | {"unknown": [1, {"a": None}]},
    GOOD | {"fraction": 3},
    GOOD | {"fraction": "NaN"},
    GOOD | {"perhaps": {"name": "y", "size": 3}, "many": [{"name": "z"}]},
    GOOD | {"perhaps": None, "many": []},
    GOOD | {"whole": -(2**63)},
    GOOD | {"zoned": "2024-02-29T13:14:15Z", "naive": "2024-02-29T13:14:15", "kind": "big"},
    GOOD | {"times": ["2024-02-29 13:14:15.1"], "stages": {"z": {"at": None}, "a": {"at": "2024-02-29t13:14:15.10Z"}}},
    GOOD | {"times": [], "stages": {}, "stage": {"at": "2024-02-29 13:14:15-00:00"}},
    GOOD | {"price": "-0.000001"},
    GOOD | {"price": 12},
    GOOD | {"price": 0.25},
]
REFUSED: list[Any] = [
    *({name: part for name, part in GOOD.items() if name != absent} for absent in GOOD),
    *(GOOD | {name: None} for name in GOOD),
    GOOD | {"whole": "1"},
    GOOD | {"whole": 1.5},
    GOOD | {"fraction": "1.5"},
    GOOD | {"flag": 1},
    GOOD | {"numbers": [1, None]},
    GOOD | {"numbers": {"a": 1}},
    GOOD | {"counts": {"a": None}},
    GOOD | {"inner": {"size": 1}},
    GOOD | {"perhaps": {"size": 1}},
    GOOD | {"many": [{"name": "a"}, {"size": 1}]},
    GOOD | {"many": [None]},
    GOOD | {"time": "2024-02-29"},
    GOOD | {"time": 1_700_000_000},
    GOOD | {"day": "2024-2-9"},
    GOOD | {"zoned": "2024-02-29T13:14:15"},
    GOOD | {"naive": "2024-02-29T13:14:15Z"},
    GOOD | {"times": [None]},
    GOOD | {"stages": {"a": {"at": "never"}}},
    GOOD | {"price": "a"},
    GOOD | {"price": True},
    GOOD | {"kind": "other"},
    [GOOD],
    None,
    1,
]
REFUSED_TEXTS = [
    b"",
    b" ",
    b"{",
    b"{} x",
    msgspec.json.encode(GOOD) + b" x",
    msgspec.json.encode(GOOD) * 2,
    msgspec.json.encode(GOOD) + b"}",
    msgspec.json.encode(GOOD).replace(b'"', b"'"),
    msgspec.json.encode(GOOD).replace("é".encode(), b"\xff"),
]


@pytest.fixture(scope="module")
def functions(spark: Any) -> dict[str, Any]:
    """What programs define."""
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame
    from pyspark.sql import functions as F

    names: dict[str, Any] = {"F": F, "Column": Column, "DataFrame": DataFrame, "Callable": Callable, "spark": spark}
    names |= {"Any": Any, "pa": pa}
    for source in SOURCES.values():
        exec(source, names)
    return names


@pytest.fixture
def decode(spark: Any, functions: dict[str, Any]) -> Any:
    """Decodes JSON of `Everything` as programs do, and encodes it again; errors are those of Spark."""
    everything = json_type_of(Everything)
    assert everything.normal is not None
    normalized = everything.normal('F.col("value")')

    def holds(value: Any) -> Any:
        return eval(" & ".join(everything.conditions("value")), {**functions, "value": value})

    def decoded(data: bytes) -> bytes:
        F = functions["F"]
        places = "value binary, topic string, partition int, offset bigint"
        rows = spark.createDataFrame([(bytearray(data), "in", 0, 7)], places)
        value = functions["required"](functions["from_json"](F.col("value"), everything.ddl, holds))
        normal = eval(normalized, functions)
        rows = rows.select(value.alias("value")).select(normal.alias("value"))
        [row] = rows.select(F.to_json("value", functions["TO_JSON"])).collect()
        text: str = row[0]
        return text.encode()

    return decoded


@pytest.mark.parametrize("value", ACCEPTED)
def test_json_that_the_native_engine_reads_is_read_and_written_alike(decode: Any, value: Any) -> None:
    data = msgspec.json.encode(value)
    serde = serde_of(Everything)
    assert decode(data) == serde.serialize(serde.deserialize(data))


@pytest.mark.parametrize("data", [*map(msgspec.json.encode, REFUSED), *REFUSED_TEXTS])
def test_json_that_the_native_engine_refuses_ends_the_query(decode: Any, data: bytes) -> None:
    with pytest.raises(ks.errors.SerdeError):
        serde_of(Everything).deserialize(data)
    with pytest.raises(Exception, match="cannot read in-0@7"):
        decode(data)


@pytest.mark.parametrize(
    ("kind", "function", "taken", "refused"),
    [
        (str, "text", [b"", "é\x00".encode()], [b"\xff", "é".encode()[:1], b"\xed\xa0\x80"]),
        (int, "long", [bytes(8), b"\xff" * 8, b"\x7f" + b"\xff" * 7], [b"", bytes(7), bytes(9)]),
        (bool, "boolean", [b"\x00", b"\x01"], [b"", b"\x02", bytes(2)]),
    ],
)
def test_bytes_that_the_native_engine_refuses_are_null(
    spark: Any, functions: dict[str, Any], kind: type, function: str, taken: list[bytes], refused: list[bytes]
) -> None:
    serde = serde_of(kind)
    rows = spark.createDataFrame([(bytearray(data),) for data in [*taken, *refused]], "data binary")
    found = [row[0] for row in rows.select(functions[function](functions["F"].col("data"))).collect()]
    assert found == [*map(serde.deserialize, taken), *(None for _ in refused)]
    for data in refused:
        with pytest.raises(ks.errors.SerdeError):
            serde.deserialize(data)


DATES = [
    "2024-02-29",
    "0001-01-01",
    "9999-12-31",
    "2024-2-9",
    "2023-02-29",
    "0000-01-01",
    "2024-02-09T00:00:00",
    "",
    " 1",
]
TIMES = [
    f"{day}T13:14:15" for day in ("2024-02-29", "0001-01-01", "9999-12-31", "2023-02-29", "0000-01-01", "2024-2-9")
]
TIMES += [
    f"2024-02-29{time}" for time in ("", " 13:14:15", "t00:00:00", "T24:00:00", "T23:60:00", "T13:14", "_13:14:15")
]
FRACTIONS = ["", ".", ".1", ".120", ".000000", ".123456", ",5"]
ZONES = ["", "Z", "z", "+02:00", "-0930", "+00:00", "-0000", "+23:59", "+24:00", "+02:60", "+02", " Z"]
DATETIMES = [f"{time}{fraction}{zone}" for time in TIMES for fraction in FRACTIONS for zone in ZONES]
DECIMALS = ["12.50", "0", "-0", "-0.000001", "1000000000000000000000000000000.5", "a", "", "--1", "1,5"]
NOT_NORMAL = ["1e3", "1.", "1E+3", "+1", ".5", "001", "0.0000001", "NaN"]


@pytest.mark.parametrize(
    ("kind", "is_text", "texts"),
    [(date, "is_date", DATES), (datetime, "is_datetime", DATETIMES), (Decimal, "is_decimal", DECIMALS)],
)
def test_texts_of_json_are_refused_as_the_native_engine_refuses_them(
    spark: Any, functions: dict[str, Any], kind: type, is_text: str, texts: list[str]
) -> None:
    column = functions[is_text](functions["F"].col("text"))
    rows = spark.createDataFrame([(text,) for text in texts], "text string").select("text", column).collect()
    natively = {text: _normal(text, kind) for text in texts}
    assert {text: found for text, found in rows} == {text: normal is not None for text, normal in natively.items()}


def test_datetimes_are_written_as_the_native_engine_writes_them(spark: Any, functions: dict[str, Any]) -> None:
    natively = {text: normal for text in DATETIMES if (normal := _normal(text, datetime)) is not None}
    column = functions["datetime_text"](functions["F"].col("text"))
    rows = spark.createDataFrame([(text,) for text in natively], "text string").select("text", column).collect()
    assert dict(rows) == natively


def _normal(text: str, kind: type) -> str | None:
    """The text that msgspec writes for a text that it reads; None if it refuses it."""
    try:
        return msgspec.json.encode(msgspec.convert(text, kind)).decode()[1:-1]
    except msgspec.ValidationError:
        return None


def test_decimals_in_another_notation_and_more_than_six_digits_of_a_second_end_the_query(
    spark: Any, functions: dict[str, Any]
) -> None:
    """kstreams reads these, and writes them in another notation."""
    F = functions["F"]
    rows = spark.createDataFrame([(text,) for text in NOT_NORMAL], "text string")
    assert not any(row[0] for row in rows.select(functions["is_decimal"](F.col("text"))).collect())
    nanoseconds = spark.createDataFrame([("2024-02-29T13:14:15.1234567Z",)], "text string")
    assert not nanoseconds.select(functions["is_datetime"](F.col("text"))).first()[0]


def test_control_characters_are_written_with_capital_digits(decode: Any) -> None:
    data = msgspec.json.encode(GOOD | {"text": "\x1f"})
    serde = serde_of(Everything)
    natively = serde.serialize(serde.deserialize(data))
    assert decode(data) == natively.replace(rb"\u001f", rb"\u001F") != natively


def test_a_decimal_that_is_a_number_loses_zeros_at_its_end(decode: Any) -> None:
    data = msgspec.json.encode(GOOD)[:-1] + b',"price":12.50}'
    serde = serde_of(Everything)
    natively = serde.serialize(serde.deserialize(data))
    assert decode(data) == natively.replace(b'"12.50"', b'"12.5"') != natively


def test_an_integer_of_more_than_64_bits_ends_the_query_though_json_can_hold_it(decode: Any) -> None:
    with pytest.raises(Exception, match="cannot read in-0@7"):
        decode(msgspec.json.encode(GOOD | {"whole": 2**63}))


ROWS = [
    (1, 2.5, "Straße é", True, datetime(2024, 2, 29, 13, 14, 15)),
    (-7, -0.5, "", False, datetime(1969, 12, 31, 23, 59, 59)),
    (0, 0.0, "a.b\\%_", None, datetime(1970, 1, 1)),
    (2**62, 1e300, "ẞß", True, datetime(2013, 1, 6, 7, 40)),
    (None, None, None, None, None),
]
N, X, S, B, T = (ks.col(name) for name in "nxsbt")
EXPRESSIONS: list[Expr] = [
    N + 1,
    1 - X,
    -N * 1,
    N / 2,
    X / N,
    1 / X,
    N % 3,
    N % -3,
    N // 4,
    N // -4,
    (N % (N - N + 5)) + N // (N - N + 5),
    (N > 0) & (X < 1.0),
    (N > 0) | B,
    ~B,
    (S == "") | (S != "x"),
    N.is_null(),
    N.fill_null(3),
    N.is_in([1, 0]),
    N.between(-7, 0),
    X.is_nan(),
    X.abs() + N.abs(),
    N.floor() - N.ceil(),
    X.cast(int),
    N.cast(float),
    N.cast(str),
    B.cast(int),
    T.cast(int),
    (N % 1_000_000).cast(datetime),
    T.dt.year() * 10_000_000_000,
    T.dt.month() + T.dt.day() + T.dt.hour() + T.dt.minute() + T.dt.second(),
    T.dt.weekday(),
    T.dt.ordinal_day(),
    T.dt.truncate(timedelta(hours=1)),
    T.dt.truncate(timedelta(minutes=7)),
    datetime(2000, 1, 1) < T,
    S.str.len(),
    S.str.upper().str.lower(),
    S.str.contains("."),
    S.str.contains("\\%"),
    S.str.starts_with("Str") | S.str.ends_with("é"),
    S.str.slice(1, 3),
    S.str.strip_chars("aSé"),
    S.str.replace_all(".", "$1"),
    S.str.replace_all("(a|t)r?", r"<\1$>", literal=False),
    S.str.replace_all("😀", "🎈"),
    S.str.contains("^S.*é$", literal=False),
    S.str.contains(r"(?a)\d\s?[^\w]", literal=False),
    S.str.extract("(t)(.)", 2),
    S.str.extract("[^a-z]+?", 0),
    S.str.slice(2),
    S.str.slice(-3, 2),
    S.str.head(2),
    S.str.head(-2),
    S.str.tail(2),
    S.str.tail(-2),
    S.str.reverse(),
    S.str.strip_chars_start("Sé ") + "|" + S.str.strip_chars_end("Sé "),
    S.str.strip_prefix("St") + S.str.strip_suffix("é"),
    S.str.pad_start(6, "é") + S.str.pad_end(6),
    S.str.split(".").list.len(),
    S.str.split("r").list.get(0),
    S.str.split("r").list.get(-2),
    S.str.split("a").list.contains("ß"),
    S.str.split("a").list.join("<>"),
    S.str.to_integer(),
    (S + "1").str.to_integer(),
    N.cast(str).str.to_integer(),
    S.str.md5(),
    S.str.sha256(),
    S.str.crc32(),
    T.dt.millisecond() + T.dt.microsecond(),
    T.dt.quarter(),
    T.dt.week() + 100 * T.dt.iso_year(),
    T.dt.date(),
    T.dt.epoch() + T.dt.epoch("ms") + T.dt.epoch("s"),
    T.dt.epoch("d"),
    T.dt.offset_by(timedelta(days=-400, microseconds=7)),
    T.dt.offset_by(timedelta(days=3_000_000)),
    T.dt.to_string("%Y-%m-%dT%H:%M:%S.%f 'at' %j%%"),
    S + "-" + S,
    ks.when(N > 0).then(S).otherwise("none"),
    ks.when(B).then(N),
    ks.when(N > 0).then(1).otherwise(0) * 4_000_000_000,
    ks.coalesce(X, N.cast(float), 1.5),
    ks.lit(2) * 3 + N,
]


class Row(msgspec.Struct, frozen=True):
    n: int | None
    x: float | None
    s: str | None
    b: bool | None
    t: datetime | None


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    """The rows, in a session as programs have it."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    micros = [(*row[:4], row[4] and (row[4] - datetime(1970, 1, 1)) // timedelta(microseconds=1)) for row in ROWS]
    rows = session.createDataFrame(micros, "n long, x double, s string, b boolean, t long")
    return rows.selectExpr("n", "x", "s", "b", "timestamp_micros(t) AS t").selectExpr("struct(*) AS value")


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=repr)
def test_a_column_has_the_results_of_the_function(frame: Any, functions: dict[str, Any], expr: Expr) -> None:
    schema = Schema(None, Row)
    text = column_of(expr, lambda leaf: f'F.col("value.{leaf.detail}")', schema)
    column = eval(text, functions)
    kind = frame.select(column.alias("result")).schema["result"].dataType.simpleString()
    if kind == "timestamp":
        column = functions["F"].unix_micros(column)
    found = [row[0] for row in frame.select(column).collect()]
    function = as_function(expr, ["value"], value=Row)
    expected = [_as_number(function(Row(*row))) for row in ROWS]
    assert list(map(repr, found)) == list(map(repr, expected)), text


@pytest.mark.parametrize(
    ("expr", "reason"),
    [
        (S.str.contains(r"\d", literal=False), r"has a class of all scripts \(write \(\?a\) before it for ASCII\)"),
        (S.str.contains("(?i)a", literal=False), "has flags"),
        (S.str.contains(r"\ba", literal=False), "has a boundary of words"),
        (S.str.contains("a(?=b)", literal=False), "has assert"),
        (S.str.contains("(?:a?)*", literal=False), "repeats what may be empty"),
        (S.str.extract("a(b)?"), "has a group that is not in every match"),
        (S.str.replace_all("a*", "-", literal=False), "matches empty texts"),
        (S.str.replace_all("a", r"\n", literal=False), "has escapes"),
        (S.str.to_titlecase(), "starts a word after each sign"),
        (S.str.to_integer(16), "reads a base"),
    ],
    ids=repr,
)
def test_what_java_reads_otherwise_is_no_column(expr: Expr, reason: str) -> None:
    with pytest.raises(Unsayable, match=reason):
        column_of(expr, lambda leaf: f'F.col("value.{leaf.detail}")', Schema(None, Row))


def _as_number(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    return (value.replace(tzinfo=None) - datetime(1970, 1, 1)) // timedelta(microseconds=1)


STORED: list[Expr] = [
    T,
    T.dt.truncate(timedelta(hours=1)),
    (N % 1_000_000).cast(datetime),
    T.fill_null(datetime(2000, 1, 1)),
    ks.when(N > 0).then(T).otherwise(datetime(2000, 1, 1, tzinfo=UTC)),
    ks.when(datetime(2000, 1, 1) < T).then(T.dt.truncate(timedelta(days=1))),
    ks.lit(1_000).cast(datetime),
    T.dt.offset_by(timedelta(minutes=5)),
]


def test_datetimes_are_stored_with_the_zone_that_they_had_or_in_utc(spark: Any, functions: dict[str, Any]) -> None:
    times = ["2024-02-29T13:14:15.000120+02:00", "1969-12-31T23:59:59", "2013-01-06T07:40:00.500000Z", None]
    rows = [(number, time) for number in (1, 0, -1_234) for time in times]
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    frame = session.createDataFrame(rows, "n long, t string").selectExpr("struct(*) AS value")
    schema = Schema(None, Row)
    texts = [stored_term(expr, lambda leaf: f'F.col("value.{leaf.detail}")', schema).column for expr in STORED]
    found = [list(row) for row in frame.select(*(eval(text, functions) for text in texts)).collect()]
    compiled = [as_function(expr, ["value"], value=Row) for expr in STORED]
    values = [Row(number, None, None, None, msgspec.convert(time, datetime | None)) for number, time in rows]
    natively = [[function(value) for function in compiled] for value in values]
    assert found == [[time and msgspec.json.encode(time).decode()[1:-1] for time in row] for row in natively], texts


def test_integers_have_64_bits(frame: Any, functions: dict[str, Any]) -> None:
    builder = ks.StreamsBuilder()
    config = Config.of({"application.id": "app"})
    numbers = builder.stream("numbers", key=str, value=int)
    numbers.map_values(ks.when(ks.value > 0).then(1).otherwise(0), value=int).to("signs")
    assert 'F.lit(1).cast("bigint")' in program_of(builder.build(config), config, lambda topic: None)
