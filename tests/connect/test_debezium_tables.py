"""A table of Debezium's events is the table of the database, whatever is delivered twice, left out or sent alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import ProcessingError, TopologyError
from kstreams.record import Headers
from kstreams.testing import TopologyTestDriver
from tests.connect.recorded import PLACEHOLDER, envelope, key_of, recorded
from tests.support.examples import examples


@dataclass(frozen=True)
class Item:
    id: int
    name: str


@dataclass(frozen=True)
class Page:
    id: int
    hits: int
    body: str


KEY = ks.ConnectJson(int, field="id")
DAY_MS = 86_400_000


class Moved(NamedTuple):
    """An event of a changed key, with the header that Debezium gives it."""

    key: bytes
    value: bytes | None
    headers: Headers

    @classmethod
    def to(cls, key: int, new: int, value: bytes | None) -> Moved:
        return cls(key_of(key), value, (("__debezium.newkey", key_of(new)),))

    @classmethod
    def back(cls, key: int, old: int, value: bytes | None) -> Moved:
        return cls(key_of(key), value, (("__debezium.oldkey", key_of(old)),))


class Table:
    """A table of changes under the test driver."""

    def __init__(self, driver: TopologyTestDriver, row: type) -> None:
        self._driver = driver
        self._source = driver.create_input_topic("changes", key=bytes, value=bytes)
        self._updates = driver.create_output_topic("updates", key=int, value=row)

    def take(self, *events: tuple[bytes | None, bytes | None] | Moved, at_ms: int = 0) -> None:
        for event in events:
            headers = event.headers if isinstance(event, Moved) else ()
            self._source.pipe_input(event[0], event[1], at_ms, headers)

    def rows(self) -> dict[Any, Any]:
        return dict(self._driver.get_key_value_store("rows").all())

    def updates(self) -> list[tuple[Any, Any]]:
        return self._updates.read_key_values()


def topology(serde: ks.Debezium[Any]) -> ks.Topology:
    builder = ks.StreamsBuilder()
    table = builder.table("changes", key=KEY, value=serde, materialized=ks.Materialized("rows", store="memory"))
    table.to_stream().to("updates", key=int, value=serde.row_type)
    return builder.build()


@contextmanager
def running(serde: ks.Debezium[Any], config: dict[str, Any] | None = None) -> Iterator[Table]:
    with TopologyTestDriver(topology(serde), config or {}) as driver:
        yield Table(driver, serde.row_type)


def item(op: str, lsn: int | None, identifier: int, name: str = "") -> tuple[bytes, bytes]:
    row = {"id": identifier, "name": name}
    return key_of(identifier), envelope(op, lsn, None if op == "d" else row, row if op == "d" else None)


def tombstone(identifier: int) -> tuple[bytes, None]:
    return key_of(identifier), None


TRUNCATE = None


def test_recorded_events_make_the_table() -> None:
    events = [each for each in recorded("debezium_items.jsonl") if each.topic == "shop.public.items" and each.key]
    with running(ks.Debezium(Item)) as table:
        table.take(*((each.key, each.value) for each in events))
        assert table.rows() == {3: Item(3, "jam")}
        assert table.updates() == [
            (1, Item(1, "tea")),
            (2, Item(2, "jam")),
            (1, Item(1, "tea")),
            (2, None),
            (3, Item(3, "jam")),
            (1, None),
        ]


def test_events_that_are_written_again_after_a_crash_change_nothing() -> None:
    first = [item("r", 10, 1, "a"), item("u", 20, 1, "b"), item("d", 30, 1), tombstone(1), item("c", 40, 1, "c")]
    with running(ks.Debezium(Item)) as table:
        table.take(*first)
        expected = [(1, Item(1, "a")), (1, Item(1, "b")), (1, None), (1, Item(1, "c"))]
        assert table.updates() == expected
        table.take(*first, *first[2:])
        assert table.updates() == []
        assert table.rows() == {1: Item(1, "c")}


def test_a_copy_of_a_deleted_row_does_not_bring_it_back() -> None:
    first = [item("c", 10, 1, "a"), item("d", 20, 1), tombstone(1)]
    with running(ks.Debezium(Item)) as table:
        table.take(*first, *first)
        assert table.updates() == [(1, Item(1, "a")), (1, None)]


def test_positions_of_deleted_rows_are_forgotten_after_the_retention() -> None:
    with running(ks.Debezium(Item, delete_retention=1_000)) as table:
        table.take(item("c", 10, 1, "a"), item("d", 20, 1))
        table.take(item("c", 10, 1, "a"), at_ms=1_000)
        assert table.rows() == {}
        table.take(item("c", 10, 1, "a"), at_ms=5_000)
        assert table.rows() == {1: Item(1, "a")}


def test_the_first_change_after_a_snapshot_may_have_its_lsn() -> None:
    """PostgreSQL's first record after the snapshot stands where the snapshot ends (recorded: LSN 22197992)."""
    with running(ks.Debezium(Item)) as table:
        table.take(item("r", 10, 1, "a"), item("r", 10, 2, "b"), item("d", 10, 1), tombstone(1))
        assert table.rows() == {2: Item(2, "b")}
        table.take(item("r", 10, 1, "a"))
        assert table.rows() == {2: Item(2, "b")}


def test_positions_count_per_row_since_transactions_overlap() -> None:
    """A transaction that commits first may have changed its row later: its LSN is greater, its event comes first."""
    with running(ks.Debezium(Item)) as table:
        table.take(item("c", 110, 2, "early commit"), item("c", 100, 1, "late commit"))
        assert table.rows() == {1: Item(1, "late commit"), 2: Item(2, "early commit")}


def test_a_tombstone_whose_delete_was_compacted_deletes() -> None:
    with running(ks.Debezium(Item)) as table:
        table.take(item("c", 10, 1, "a"), tombstone(1))
        assert table.rows() == {}
        table.take(item("c", 10, 1, "a"))  # what compaction has retained after the tombstone
        assert table.rows() == {1: Item(1, "a")}


def test_the_tombstone_of_a_copy_deletes_nothing() -> None:
    first = [item("c", 10, 1, "a"), item("d", 20, 1), tombstone(1), item("c", 30, 1, "b")]
    with running(ks.Debezium(Item)) as table:
        table.take(*first, *first[1:3])
        assert table.rows() == {1: Item(1, "b")}
        table.take(first[3], item("d", 40, 1), tombstone(1))
        assert table.rows() == {}


def test_events_without_an_lsn_are_applied_as_they_come() -> None:
    with running(ks.Debezium(Item)) as table:
        table.take(item("c", None, 1, "a"), item("u", None, 1, "b"))
        assert table.rows() == {1: Item(1, "b")}
        table.take(item("d", None, 1))
        assert table.rows() == {}


def page(op: str, lsn: int, hits: int, body: str) -> tuple[bytes, bytes]:
    return key_of(1), envelope(op, lsn, {"id": 1, "hits": hits, "body": body})


def test_an_unchanged_large_column_keeps_its_value() -> None:
    with running(ks.Debezium(Page)) as table:
        table.take(page("c", 10, 1, "x" * 5000), page("u", 20, 2, PLACEHOLDER), page("u", 30, 3, PLACEHOLDER))
        assert table.rows() == {1: Page(1, 3, "x" * 5000)}


def page_at(identifier: int, op: str, lsn: int, body: str) -> bytes:
    row = {"id": identifier, "hits": 1, "body": body}
    return envelope(op, lsn, None if op == "d" else row, row if op == "d" else None)


def test_a_large_column_moves_to_the_new_key() -> None:
    """Recorded with 3.7: the insert under the new key has the placeholder of the unchanged column."""
    moves = [
        Moved.to(1, 2, page_at(1, "d", 20, "")),
        Moved.to(1, 2, None),
        Moved.back(2, 1, page_at(2, "c", 20, PLACEHOLDER)),
    ]
    with running(ks.Debezium(Page)) as table:
        table.take(page("c", 10, 1, "x" * 5000), *moves, moves[0])
        assert table.rows() == {2: Page(2, 1, "x" * 5000)}


def test_a_large_column_that_moves_from_another_partition_is_an_error_that_says_what_to_do() -> None:
    with running(ks.Debezium(Page)) as table, pytest.raises(ProcessingError, match="let the topic have one partition"):
        table.take(Moved.back(2, 1, page_at(2, "c", 20, PLACEHOLDER)))


def test_a_row_that_was_deleted_during_the_snapshot_is_deleted() -> None:
    """The changes of that time are reported after the snapshot, which does not have the row."""
    with running(ks.Debezium(Page)) as table:
        table.take((key_of(2), page_at(2, "r", 10, "b")), page("u", 12, 2, PLACEHOLDER))
        table.take((key_of(1), page_at(1, "d", 14, "")), tombstone(1))
        assert table.rows() == {2: Page(2, 1, "b")}


def test_a_large_column_that_was_never_reported_is_an_error_that_says_what_to_do() -> None:
    with (
        running(ks.Debezium(Page)) as table,
        pytest.raises(
            ProcessingError, match=r"public\.items with key 1 does not report body \(TOAST\).*REPLICA IDENTITY FULL"
        ),
    ):
        table.take(page("u", 20, 2, PLACEHOLDER))


def test_truncation_is_an_error_that_says_what_to_do() -> None:
    with (
        running(ks.Debezium(Item)) as table,
        pytest.raises(ProcessingError, match=r"public\.items was truncated.*skipped\.operations=t.*truncate='delete'"),
    ):
        table.take((TRUNCATE, envelope("t", 30)))


def test_truncation_deletes_all_rows_on_request() -> None:
    first = [item("c", 10, 1, "a"), item("c", 20, 2, "b"), (TRUNCATE, envelope("t", 30)), item("c", 40, 1, "c")]
    with running(ks.Debezium(Item, truncate="delete")) as table:
        table.take(*first)
        assert table.rows() == {1: Item(1, "c")}
        assert table.updates() == [
            (1, Item(1, "a")),
            (2, Item(2, "b")),
            (1, None),
            (2, None),
            (1, Item(1, "c")),
        ]
        table.take(*first)
        assert table.updates() == []


def snapshot_row(lsn: int, identifier: int, name: str, place: str = "true") -> tuple[bytes, bytes]:
    return key_of(identifier), envelope("r", lsn, {"id": identifier, "name": name}, snapshot=place)


def test_rows_that_a_further_snapshot_lacks_were_deleted() -> None:
    """The connector was killed during its snapshot; row 1 was deleted before it took another one (seen with 3.7)."""
    with running(ks.Debezium(Item)) as table:
        table.take(snapshot_row(10, 1, "a"), snapshot_row(10, 2, "b"))
        table.take(snapshot_row(30, 2, "c"), snapshot_row(30, 3, "d"))
        assert table.rows() == {1: Item(1, "a"), 2: Item(2, "c"), 3: Item(3, "d")}
        table.take(item("c", 30, 4, "e"))  # a partition without the last row of the snapshot
        assert table.rows() == {2: Item(2, "c"), 3: Item(3, "d"), 4: Item(4, "e")}
        assert table.updates()[-2:] == [(1, None), (4, Item(4, "e"))]


def test_a_copy_does_not_complete_a_snapshot() -> None:
    first = [snapshot_row(10, 1, "a"), snapshot_row(10, 2, "b", "last"), item("u", 20, 1, "c")]
    with running(ks.Debezium(Item)) as table:
        table.take(*first, snapshot_row(30, 1, "d"), *first)
        assert table.rows() == {1: Item(1, "d"), 2: Item(2, "b")}
        table.take(snapshot_row(30, 2, "b", "last"))
        assert table.rows() == {1: Item(1, "d"), 2: Item(2, "b")}


def test_the_last_row_of_a_snapshot_completes_it() -> None:
    with running(ks.Debezium(Item)) as table:
        table.take(item("c", 10, 1, "a"), item("c", 20, 2, "b"), snapshot_row(30, 2, "c", "last"))
        assert table.rows() == {2: Item(2, "c")}


def test_a_snapshot_of_some_rows_deletes_no_others() -> None:
    for serde, place in ((ks.Debezium(Item, snapshot="merge"), "last"), (ks.Debezium(Item), "incremental")):
        with running(serde) as table:
            table.take(item("c", 10, 1, "a"), snapshot_row(30, 2, "c", place), item("c", 40, 3, "d"))
            assert table.rows() == {1: Item(1, "a"), 2: Item(2, "c"), 3: Item(3, "d")}


def test_a_table_without_a_primary_key_is_an_error_that_says_what_to_do() -> None:
    with (
        running(ks.Debezium(Item)) as table,
        pytest.raises(ProcessingError, match=r"a change of table public\.items has no key: .*message\.key\.columns"),
    ):
        table.take((None, envelope("c", 10, {"id": 1, "name": "a"})))


def test_a_handler_may_skip_such_events() -> None:
    with running(ks.Debezium(Item), {"processing.exception.handler": "continue"}) as table:
        table.take((TRUNCATE, envelope("t", 5)), item("c", 10, 1, "a"))
        assert table.rows() == {1: Item(1, "a")}


def test_the_table_is_joined_and_grouped_like_any_other() -> None:
    builder = ks.StreamsBuilder()
    items = builder.table("changes", key=KEY, value=ks.Debezium(Item), name="items")
    items.group_by(lambda key, row: (row.name, 1), key=str, value=int).count().to_stream().to("names")
    orders = builder.stream("orders", key=KEY, value=int)
    orders.join(items, lambda count, row: f"{count} {row.name}").to("named", value=str)
    with TopologyTestDriver(builder.build()) as driver:
        changes = driver.create_input_topic("changes", key=bytes, value=bytes)
        changes.pipe_input(*item("c", 10, 1, "tea"))
        changes.pipe_input(*item("c", 20, 2, "tea"))
        driver.create_input_topic("orders", key=KEY, value=int).pipe_input(1, 7)
        assert driver.create_output_topic("names", key=str, value=int).read_key_values_to_map() == {"tea": 2}
        assert driver.create_output_topic("named", key=KEY, value=str).read_values() == ["7 tea"]
        changes.pipe_input(*item("d", 30, 2))
        assert driver.create_output_topic("names", key=str, value=int).read_key_values_to_map() == {"tea": 1}


def test_what_cannot_be_declared_says_what_to_write() -> None:
    builder = ks.StreamsBuilder()
    with pytest.raises(TopologyError, match=r"types of its keys and rows: .*value=ks\.Debezium\(Order\)"):
        builder.table("changes", value=ks.Debezium(Item))
    with pytest.raises(TopologyError, match=r"types of its keys and rows"):
        builder.table("changes", key=KEY, value=ks.Debezium())
    with pytest.raises(TopologyError, match=r"global table of 'changes' .* read that topic as a global table"):
        builder.global_table("changes", key=KEY, value=ks.Debezium(Item))


class Database:
    """A table of pages, and the events that Debezium writes for its changes."""

    def __init__(self) -> None:
        self.rows: dict[int, Page] = {}
        self.events: list[tuple[bytes | None, bytes | None] | Moved] = []
        self._lsn = 100

    def _next(self) -> int:
        self._lsn += 8
        return self._lsn

    def put(self, key: int, hits: int, body: str | None) -> None:
        """Insert or update a row. An update without a body leaves it unchanged, and the event has the placeholder."""
        self.events += self._put(key, hits, body, self._next())

    def _put(self, key: int, hits: int, body: str | None, lsn: int) -> list[tuple[bytes | None, bytes | None]]:
        old = self.rows.get(key)
        self.rows[key] = Page(key, hits, body or (old.body if old else "new"))
        reported = self.rows[key].body if body or old is None else PLACEHOLDER
        after = {"id": key, "hits": hits, "body": reported}
        return [(key_of(key), envelope("u" if old else "c", lsn, after))]

    def delete(self, key: int) -> None:
        if key in self.rows:
            self.events += self._delete(key, self._next())

    def _delete(self, key: int, lsn: int) -> list[tuple[bytes | None, bytes | None]]:
        del self.rows[key]
        return [(key_of(key), envelope("d", lsn, None, {"id": key, "hits": 0, "body": ""})), (key_of(key), None)]

    def rename(self, old: int, new: int) -> None:
        """Change a key: a delete and an insert with one LSN."""
        if old in self.rows and new not in self.rows:
            page = self.rows[old]
            lsn = self._next()
            self.events += [Moved.to(old, new, value) for _, value in self._delete(old, lsn)]
            self._put(new, page.hits, page.body, lsn)
            after = {"id": new, "hits": page.hits, "body": PLACEHOLDER}
            self.events.append(Moved.back(new, old, envelope("c", lsn, after)))

    def overlap(self, first: int, second: int) -> None:
        """Change two rows in overlapping transactions: the one that commits first has the greater LSN."""
        if first != second:
            lsn = self._next()
            later = self._next()
            self.events += self._put(second, later, "later", later)
            self.events += self._put(first, lsn, "earlier", lsn)

    def snapshot(self) -> None:
        lsn = self._next()
        for number, (key, row) in enumerate(self.rows.items(), 1):
            after = {"id": key, "hits": row.hits, "body": row.body}
            place = "last" if number == len(self.rows) else "true"
            self.events.append((key_of(key), envelope("r", lsn, after, snapshot=place)))
        self._lsn -= 8  # the first change after a snapshot may have its LSN

    def lose_position(self, deleted: int, inserted: int) -> None:
        """Change rows while the connector is away. It has lost its position, and begins with a snapshot."""
        if deleted in self.rows and len(self.rows) > 1:
            self._delete(deleted, self._next())
            self._put(inserted, 7, "meanwhile", self._next())
            self.snapshot()

    def truncate(self) -> None:
        self.rows.clear()
        self.events.append((TRUNCATE, envelope("t", self._next())))


KEYS = st.integers(0, 4)


class Step(NamedTuple):
    """A call of a method of `Database`."""

    method: str
    arguments: tuple[Any, ...] = ()

    def apply(self, database: Database) -> None:
        getattr(database, self.method)(*self.arguments)


steps = st.one_of(
    st.builds(Step, st.just("put"), st.tuples(KEYS, st.integers(0, 99), st.none() | st.sampled_from(["a", "b"]))),
    st.builds(Step, st.just("delete"), st.tuples(KEYS)),
    st.builds(Step, st.sampled_from(["rename", "overlap", "lose_position"]), st.tuples(KEYS, KEYS)),
    st.builds(Step, st.sampled_from(["snapshot", "truncate"]), st.just(())),
)


class Crash(NamedTuple):
    """After so many events, the connector begins again so many events before."""

    after: int
    back: int


def delivered(events: list[Any], crashes: list[Crash]) -> list[Any]:
    """The events as a connector writes them that crashes: the last ones again, then those that follow.

    A delete and its tombstone are written again together, since both come from one place in the write-ahead log.
    """
    result: list[Any] = []
    position = 0
    for crash in sorted(crashes):
        end = min(max(crash.after, position), len(events))
        result += events[position:end]
        position = max(0, end - crash.back)
        is_tombstone = position < len(events) and events[position][1] is None
        position -= is_tombstone
    return result + events[position:]


@given(
    st.lists(steps, max_size=25),
    st.lists(st.builds(Crash, st.integers(0, 40), st.integers(0, 40)), max_size=4),
)
@settings(max_examples=examples(75), deadline=None)
def test_the_table_equals_the_database_after_any_changes_and_crashes(changes: list[Step], crashes: list[Crash]) -> None:
    database = Database()
    for change in changes:
        change.apply(database)
    with running(ks.Debezium(Page, truncate="delete")) as exact:
        exact.take(*database.events)
        expected = exact.updates()
    with running(ks.Debezium(Page, truncate="delete")) as table:
        table.take(*delivered(database.events, crashes))
        assert table.rows() == database.rows
        assert table.updates() == expected
