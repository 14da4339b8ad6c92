"""Stores as tables: each entry that a store gives is a row, at present and as of a time."""

from __future__ import annotations

import dataclasses
import enum
import random
import uuid
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import msgspec
import polars
import pyarrow as pa
import pydantic
import pytest

import kstreams as ks
from kstreams.errors import StateError
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.serdes import StringSerde, TimeWindowedSerde
from kstreams.state import Stores, open_task_state
from kstreams.state.read_only_store import ReadOnlySessionStore, ReadOnlyVersionedStore, ReadOnlyWindowStore
from kstreams.state.tables.store_tables import as_table, rows_of_store
from tests.native.world import World, until
from tests.queries.test_committed_views import EVERY_KIND, KEYS, KINDS, commit

TEXTS: dict[str, Any] = {"key": str, "value": str}
BOTH = pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])


@dataclasses.dataclass(frozen=True)
class Order:
    """A value of several fields."""

    amount: int
    note: str
    at: datetime


def topology() -> ks.Topology:
    builder = ks.StreamsBuilder()
    words = builder.stream("in", **TEXTS)
    grouped = words.group_by_key()
    grouped.count("counts")
    grouped.count(ks.Materialized("in-memory", store="memory"))
    grouped.windowed_by(ks.TimeWindows(size=10_000, grace=10**6)).count("windows")
    grouped.windowed_by(ks.SessionWindows(gap=4_000, grace=10**6)).count("sessions")
    orders = words.map_values(lambda value: Order(len(value), value, datetime(2026, 1, 1, len(value))), value=Order)
    orders.to_table(materialized="orders")
    builder.table("in2", **TEXTS, materialized=ks.Materialized("versions", history_retention=10**6))
    return builder.build()


@pytest.fixture
def streams(tmp_path: Path) -> Any:
    world = World(tmp_path, **{"commit.interval.ms": 10})
    world.create("in", 3)
    world.create("in2", 3)
    world.write("in", [(f"k{i % 7}", "x" * (i % 5), 1_000 * i) for i in range(60)])
    world.write("in2", [("a", "one", 10), ("b", "two", 15), ("a", "three", 20), ("b", None, 30)])
    with world.streams(topology()) as started:
        started.start()
        until(lambda: started.state is State.RUNNING)
        until(lambda: total(started.store("counts", isolation="read_committed")) == 60)
        versions = started.store("versions", ReadOnlyVersionedStore, isolation="read_committed")
        until(lambda: versions.get("b", as_of=15) is not None and versions.get("b") is None)
        until(lambda: (row := versions.get("a")) is not None and row.value == "three")
        yield started


def total(store: Any) -> int:
    return sum(row.value for _, row in store.all())


def rows(table: Any, *names: str) -> list[tuple[Any, ...]]:
    assert table.column_names == list(names)
    return sorted(zip(*(table.column(name).to_pylist() for name in names), strict=True))


@BOTH
def test_a_row_of_the_table_for_each_entry_of_the_store(streams: KafkaStreams, isolation: Any) -> None:
    counts = streams.store("counts", isolation=isolation)
    expected = sorted((key, row.value, row.timestamp) for key, row in counts.all())
    assert len(expected) == 7
    assert rows(counts.to_arrow(), "key", "value", "timestamp") == expected

    windows: Any = streams.store("windows", ReadOnlyWindowStore, isolation=isolation)
    sessions: Any = streams.store("sessions", ReadOnlySessionStore, isolation=isolation)
    for store, value, times in (
        (windows, lambda row: row.value, lambda row: (row.timestamp,)),
        (sessions, lambda row: row, lambda row: ()),
    ):
        found = store.all()
        expected = sorted(
            (key.key, key.window.start_ms, key.window.end_ms, value(row), *times(row)) for key, row in found
        )
        names = ("key", "window_start", "window_end", "value", "timestamp")
        assert rows(store.to_arrow(), *names[: len(expected[0])]) == expected


@BOTH
def test_windows_that_contain_a_time(streams: KafkaStreams, isolation: Any) -> None:
    for name, view, contains in (
        ("windows", ReadOnlyWindowStore, lambda window, time: window.start_ms <= time < window.end_ms),
        ("sessions", ReadOnlySessionStore, lambda window, time: window.start_ms <= time <= window.end_ms),
    ):
        store: Any = streams.store(name, view, isolation=isolation)
        for time in (0, 9_999, 10_000, 20_500, 41_000, 10**7):
            expected = sorted((key.key, key.window.start_ms) for key, _ in store.all() if contains(key.window, time))
            table = store.to_arrow(as_of=time)
            assert rows(table.select(["key", "window_start"]), "key", "window_start") == expected


@BOTH
def test_versions_and_which_of_them_held(streams: KafkaStreams, isolation: Any) -> None:
    store = streams.store("versions", ReadOnlyVersionedStore, isolation=isolation)
    whole = rows(store.to_arrow(), "key", "valid_from", "valid_to", "value")
    assert whole == [("a", 10, 20, "one"), ("a", 20, None, "three"), ("b", 15, 30, "two")]
    for time in (0, 10, 14, 15, 19, 20, 29, 30, 10**5):
        held = [(key, row.value) for key in "ab" if (row := store.get(key, as_of=time)) is not None]
        assert rows(store.to_arrow(as_of=time).select(["key", "value"]), "key", "value") == held


def test_what_is_in_memory_is_a_table_too(streams: KafkaStreams) -> None:
    until(lambda: total(streams.store("in-memory")) == 60)
    columns = ["key", "value", "timestamp"]
    assert rows(streams.store("in-memory").to_arrow(), *columns) == rows(streams.store("counts").to_arrow(), *columns)


def test_fields_of_values_are_fields_of_a_struct(streams: KafkaStreams) -> None:
    found = streams.store("orders").to_arrow()
    expected = {key: dataclasses.asdict(row.value) for key, row in streams.store("orders").all()}
    assert dict(zip(found["key"].to_pylist(), found["value"].to_pylist(), strict=True)) == expected


def test_polars_takes_it(streams: KafkaStreams) -> None:
    frame = streams.store("counts").to_polars()
    assert isinstance(frame, polars.DataFrame)
    assert frame["value"].sum() == 60


def test_a_store_of_the_present_has_no_past(streams: KafkaStreams) -> None:
    with pytest.raises(StateError, match="'counts' knows the present alone"):
        streams.store("counts").to_arrow(as_of=5)


@BOTH
def test_sql_joins_stores(streams: KafkaStreams, isolation: Any) -> None:
    query = """
        with large as (select key, value from counts where value > 8)
        select key, large.value as count, orders.value.amount as amount from large join Orders using (key) order by key
    """
    found = streams.sql(query, isolation=isolation).to_pylist()
    amounts = {key: row.value.amount for key, row in streams.store("orders").all()}
    counts = {key: row.value for key, row in streams.store("counts").all()}
    expected = [
        {"key": key, "count": count, "amount": amounts[key]} for key, count in sorted(counts.items()) if count > 8
    ]
    assert found == expected
    assert len(found) == 4


def test_sql_of_a_time(streams: KafkaStreams) -> None:
    assert streams.sql("select value from versions order by value", as_of=15).column("value").to_pylist() == [
        "one",
        "two",
    ]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select * from nowhere", "nowhere"),
        ("select key form counts", "syntax error"),
        ("drop table counts", "SELECT"),
        ("select * from read_csv('/etc/passwd')", "[Ff]ile"),
        ("select * from '/etc/passwd'", "passwd"),
        ("select * from rows", "rows"),
        ("select nothing from counts", "nothing"),
    ],
)
def test_sql_that_has_no_answer(streams: KafkaStreams, query: str, said: str) -> None:
    with pytest.raises(StateError, match=f"no answer: .*{said}(?s:.*)stores are: counts, in-memory, orders"):
        streams.sql(query)


def test_sql_writes_no_file(streams: KafkaStreams, tmp_path: Path) -> None:
    with pytest.raises(StateError, match="no answer"):
        streams.sql(f"copy counts to '{tmp_path / 'counts.csv'}'")
    assert not (tmp_path / "counts.csv").exists()


@EVERY_KIND
@pytest.mark.parametrize("seed", range(4))
def test_the_rows_of_a_view_are_those_of_the_store_at_the_commit(tmp_path: Path, kind: str, seed: int) -> None:
    builder, put, _ = KINDS[kind]
    draw, state = random.Random(seed), open_task_state([builder], tmp_path)
    for end in range(1, 4):
        for _ in range(draw.randrange(1, 80)):
            time = draw.randrange(40) * 5 * draw.randrange(1, 5)
            put(state.stores["s"], draw.choice(KEYS), time, draw.choice([None, 1, 2, 3, 4]))
        commit(state, end)
        expected = as_table([rows_of_store(state.stores["s"])], None)
        put(state.stores["s"], KEYS[0], 700, 5)
        with state.committed.reading() as view:
            found = as_table([rows_of_store(view.store("s"))], None)
        assert found.schema == expected.schema
        assert rows(found, *expected.column_names) == rows(expected, *expected.column_names)
        assert found.num_rows
    state.close()


class Color(enum.Enum):
    RED = "red"


class Part(msgspec.Struct, rename="camel"):
    unit_price: Decimal
    sold_at: datetime | None = None


class Model(pydantic.BaseModel):
    amount: int = pydantic.Field(alias="Amount")


class Line(TypedDict):
    count: int
    note: NotRequired[str]


class Whole(msgspec.Struct):
    ident: uuid.UUID
    color: Color
    parts: list[Part]
    tags: set[int]
    data: bytes
    line: Line
    day: date
    lasted: timedelta
    below: list[Whole] = []


WHOLE = pa.struct(
    [
        ("ident", pa.string()),
        ("color", pa.string()),
        ("parts", pa.list_(pa.struct([("unitPrice", pa.null()), ("soldAt", pa.timestamp("us", "UTC"))]))),
        ("tags", pa.list_(pa.int64())),
        ("data", pa.binary()),
        ("line", pa.struct([("count", pa.int64()), ("note", pa.string())])),
        ("day", pa.date32()),
        ("lasted", pa.duration("us")),
        ("below", pa.list_(pa.null())),
    ]
)


def table_of(*parts: list[Any], key: Any = str, value: Any) -> pa.Table:
    """The table of a key-value store with these values in its partitions."""
    builder, held = Stores.key_value("s", key=key, value=value), list[Any]()
    for values in parts:
        state = open_task_state([builder])
        for number, each in enumerate(values):
            state.stores["s"].put(f"k{number}", each)
        held.append(rows_of_store(state.stores["s"]))
    return as_table(held, None)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Whole, WHOLE),
        (Model, pa.struct([("Amount", pa.int64())])),
        (Line | None, pa.struct([("count", pa.int64()), ("note", pa.string())])),
        (list[Color], pa.list_(pa.string())),
        (int, pa.int64()),
        (dict[str, int], pa.null()),
    ],
)
def test_an_empty_store_has_the_columns_of_its_type(kind: Any, expected: pa.DataType) -> None:
    assert table_of([], [], value=kind).schema == pa.schema([("key", pa.string()), ("value", expected)])


def test_fields_that_no_value_has_are_there() -> None:
    line, empty = Line(count=1), Line(count=2, note="x")
    assert table_of([line], value=Line).schema == table_of([line, empty], value=Line).schema
    whole = Whole(uuid.UUID(int=1), Color.RED, [], {1}, b"\xff", line, date(2026, 1, 1), timedelta(1))
    found = table_of([whole], value=Whole)
    assert found.schema.field("value").type == WHOLE
    assert found["value"].to_pylist() == [
        {**msgspec.to_builtins(whole, builtin_types=(bytes, date, timedelta)), "line": {"count": 1, "note": None}}
    ]


def test_datetimes_of_several_offsets_go_into_one_column() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    there = noon.astimezone(timezone(timedelta(hours=2)))
    found = table_of([Part(Decimal("1.5"), noon)], [Part(Decimal("10.25"), there), Part(Decimal(2))], value=Part)
    assert found["value"].to_pylist() == [
        {"unitPrice": Decimal("1.5"), "soldAt": noon},
        {"unitPrice": Decimal("10.25"), "soldAt": noon},
        {"unitPrice": Decimal(2), "soldAt": None},
    ]


def test_models_and_keys_of_dicts_that_are_no_text_have_columns() -> None:
    assert table_of([Model(Amount=1)], value=Model)["value"].to_pylist() == [{"Amount": 1}]
    assert table_of([{1: 2}], value=dict[int, int])["value"].to_pylist() == [{"1": 2}]


@pytest.mark.parametrize(("kind", "values"), [(int | str, [1, "a"]), (tuple[int, str], [(1, "a")]), (Any, [2**63])])
def test_values_of_several_types_are_refused_with_a_reason(kind: Any, values: list[Any]) -> None:
    with pytest.raises(StateError, match=r"make no column of one type.*read them by all\(\)"):
        table_of(values, value=kind)


def test_windowed_keys_of_a_table_have_their_windows_in_columns() -> None:
    builder = Stores.key_value("s", key=TimeWindowedSerde(StringSerde(), 10), value=int)
    state = open_task_state([builder])
    assert as_table([rows_of_store(state.stores["s"])], None).num_rows == 0
    state.stores["s"].put(ks.Windowed("a", ks.Window(20, 30)), 1)
    found = as_table([rows_of_store(state.stores["s"])], None)
    assert found.to_pylist() == [{"key": "a", "window_start": 20, "window_end": 30, "value": 1}]
