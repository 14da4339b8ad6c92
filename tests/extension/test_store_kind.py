"""A store kind of an application, a bounded deque per key, is one descriptor (`DEQUE`) with its store and its view."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import SerdeError, StateError
from kstreams.server.limits import Limits
from kstreams.server.store_query import parse_store_query
from kstreams.state import StoreKind, register_store_kind
from kstreams.state.kinds.key_value import LiveKeyValueStore
from kstreams.state.read_only_store import Answer, ReadOnlyStore
from kstreams.state.row_readers import KEY_VALUE_ROWS
from kstreams.state.store_builder import RowQuery
from kstreams.testing import TopologyTestDriver
from tests.extension.two_runs import Updates, natively, on_driver, on_spark
from tests.spark.running import Row


class DequeStore(LiveKeyValueStore):
    """The last `max_length` values of each key."""

    def append(self, key: str, value: int) -> None:
        self.put(key, (*self.items(key), value)[-self.builder.options["max_length"] :])

    def items(self, key: str) -> tuple[int, ...]:
        found: tuple[int, ...] = self.get(key) or ()
        return found


class ReadOnlyDeque(ReadOnlyStore):
    """The read methods for queries."""

    def items(self, key: str) -> tuple[int, ...]:
        found: tuple[int, ...] = self._look_up(key, lambda store: store.items(key)) or ()
        return found


DEQUE = register_store_kind(
    StoreKind(
        name="bounded-deque",
        open=DequeStore,
        view=ReadOnlyDeque,
        writes={"append": lambda key, value: (key, (value,)), "put": None},
        changelog_key=lambda builder: builder.key,
        rows=KEY_VALUE_ROWS,
    )
)
MAX_LENGTH = 3
RECENT = ks.Stores.of_kind("bounded-deque", "recent", key=str, value=tuple[int, ...], max_length=MAX_LENGTH)
TYPES = {"in": (str, int), "out": (str, int)}
ROWS = [Row("in", "abc"[i * i % 3], i % 7, i) for i in range(30)]


class SumOfRecent(ks.Processor[str, int, str, int]):
    def init(self, context: ks.ProcessorContext[str, int]) -> None:
        self.context, self.store = context, context.get_state_store("recent")

    def process(self, record: ks.Record[str, int]) -> None:
        self.store.append(record.key, record.value)
        self.context.forward(record.with_value(sum(self.store.items(record.key))))


def topology(store: Any = RECENT) -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.add_state_store(store)
    sums = builder.stream("in", key=str, value=int).process(SumOfRecent, stores=["recent"])
    sums.to("out", key=str, value=int)
    return builder.build()


def expected() -> Updates:
    """The same in plain Python."""
    kept: dict[str, deque[int]] = {}
    updates: Updates = {}
    for row in ROWS:
        recent = kept.setdefault(row.key, deque(maxlen=MAX_LENGTH))
        recent.append(row.value)
        updates.setdefault(row.key, []).append((sum(recent), row.timestamp))
    return updates


def test_on_the_test_driver() -> None:
    assert on_driver(topology(), TYPES, ROWS) == expected()


def test_natively_with_restarts(tmp_path: Path) -> None:
    assert natively(tmp_path, topology(), TYPES, ROWS) == expected()


@pytest.mark.spark
def test_on_spark(spark: Any, tmp_path: Path) -> None:
    assert on_spark(spark, tmp_path, topology(), TYPES, ROWS) == expected()


def test_tests_and_queries_see_it() -> None:
    class AtOnce:
        number = 0

        def begin(self, read: Callable[[Any], Any]) -> Callable[[], Answer]:
            return lambda: Answer(read(store), {})

    driver = TopologyTestDriver(topology())
    records = driver.create_input_topic("in", key=str, value=int)
    for value in range(5):
        records.pipe_input("a", value)
    store = driver.get_state_store("recent")
    view = DEQUE.view("recent", [AtOnce()])
    assert store.items("a") == view.items("a") == (2, 3, 4)
    with pytest.raises(AttributeError, match="has no method 'append' here: it is read-only"):
        view.append("a", 5)


def test_typed_queries_and_the_query_server_read_its_rows() -> None:
    driver = TopologyTestDriver(topology())
    records = driver.create_input_topic("in", key=str, value=int)
    for key in "bab":
        records.pipe_input(key, 1)
    store = driver.get_state_store("recent")
    limits = Limits()
    first = parse_store_query(RECENT, {"limit": "1", "isolation": "read_uncommitted"}, limits).rows
    assert DEQUE.name in first.kinds
    assert first.read(store) == [("a", (1,)), ("b", (1, 1))]
    place = KEY_VALUE_ROWS.place(RECENT, *first.read(store)[0])
    assert RowQuery(reader=KEY_VALUE_ROWS, after=place).read(store) == [("b", (1, 1))]
    assert KEY_VALUE_ROWS.row(RECENT, "a", (1,)) == {"key": "a", "value": (1,)}
    query = ks.KeyQuery("b")
    assert DEQUE.name in query.kinds
    assert query.read(store) == (1, 1)


def test_a_value_that_its_serde_cannot_write_is_known_at_once() -> None:
    class Skip:
        def __call__(self, context: Any, record: Any, error: Exception) -> ks.Response:
            errors.append(error)
            return ks.Response.resume()

    errors: list[Exception] = []
    builder = ks.StreamsBuilder()
    builder.add_state_store(RECENT)
    stream = builder.stream("in", key=str, value=int).map_values(
        lambda value: float(value) + 0.5 if value else object()
    )
    stream.process(SumOfRecent, stores=["recent"]).to("out", key=str, value=int)
    driver = TopologyTestDriver(builder.build(), Config.of(application_id="app", processing_exception_handler=Skip()))
    driver.create_input_topic("in", key=str, value=int).pipe_input("a", 0)
    assert isinstance(errors[0], SerdeError)


def test_a_name_stands_for_one_kind() -> None:
    with pytest.raises(StateError, match=r"a kind of stores is called 'bounded-deque' already"):
        register_store_kind(StoreKind(name="bounded-deque", open=DequeStore, view=ReadOnlyDeque))
    with pytest.raises(StateError, match=r"there is no kind of stores 'bounded-stack'; there are .*bounded-deque"):
        ks.Stores.of_kind("bounded-stack", "recent")
