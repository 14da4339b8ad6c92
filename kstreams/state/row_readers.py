"""The `RowReader`s of the package: they read the rows of key-value, window, session and versioned stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, dropwhile, islice, takewhile
from typing import Any

from kstreams.errors import StateError
from kstreams.record import Window, Windowed
from kstreams.serdes import Serde
from kstreams.serdes.byte_kinds import decoder, shown
from kstreams.state.rows.scan_order import scan_order
from kstreams.state.store_builder import LAST_MS, Entry, Row, RowPlace, RowQuery, RowReader, StoreBuilder
from kstreams.state.values_with_headers import headers_of, without_headers

_HEADER = decoder("auto")  # as in `kstreams consume`
_BOUNDS = frozenset({"from_ms", "to_ms", "as_of_ms", "low", "high"})


class KeyValueRows:
    """Reads stores with one row per key."""

    bounds = frozenset({"low", "high", "prefix"})
    identity = ("key",)
    is_lookup = True

    def of_key(self, store: Any, query: RowQuery) -> list[Entry]:
        """Return the row of a key, if it exists."""
        value = store.get(query.key)
        return [] if value is None else [(query.key, value)]

    def of_keys(self, store: Any, query: RowQuery) -> Iterable[Entry]:
        """Return the rows of a range or a prefix, in the order of the serialized keys."""
        after = query.after
        serde = store.builder.key
        if query.prefix is not None:
            return _with_prefix(store, query.prefix, after)
        last = None if after is None else serde.deserialize(after.key)
        entries: Iterable[Entry]
        if query.descending:
            entries = store.reverse_range(query.low, query.high if last is None else last)
        else:
            entries = store.range(query.low if last is None else last, query.high)
        return entries if after is None else _without_first(entries, serde, after.key)

    def place(self, builder: StoreBuilder, key: object, value: object) -> RowPlace:
        """Return the position of a row: its key."""
        return RowPlace(_key_bytes(builder, key))

    def row(self, builder: StoreBuilder, key: object, value: object) -> Row:
        """Return `key`, `value`, and `timestamp` and `headers` if the store has them."""
        return {"key": shown(key), **_value_columns(builder, value)}


class _WindowedRows:
    """Reads rows with windowed keys."""

    bounds = _BOUNDS
    identity = ("key", "window_start", "window_end")
    is_lookup = False

    def place(self, builder: StoreBuilder, key: Windowed[object], value: object) -> RowPlace:
        """Return the position of a row: its key and its window."""
        return RowPlace(_key_bytes(builder, key.key), *key.window)

    def row(self, builder: StoreBuilder, key: Windowed[object], value: object) -> Row:
        """Return `key`, `window_start`, `window_end`, `value`, and `timestamp` and `headers` if the store has them."""
        window = {"window_start": key.window.start_ms, "window_end": key.window.end_ms}
        return {"key": shown(key.key), **window, **_value_columns(builder, value)}


class WindowRows(_WindowedRows):
    """Reads stores with one row per key and window start."""

    def of_key(self, store: Any, query: RowQuery) -> Iterator[Entry]:
        """Return the windows of a key, by start."""
        size_ms = store.builder.window_size_ms or 0
        fetch = store.backward_fetch if query.descending else store.fetch
        windows = fetch(query.key, *self._starts(store, query))
        entries = ((Windowed(query.key, Window(start, start + size_ms)), value) for start, value in windows)
        return _after(entries, store, query, lambda place: place.first_ms)

    def of_keys(self, store: Any, query: RowQuery) -> Iterator[Entry]:
        """Return the windows of a range of keys, in the order of the store."""
        fetch = store.backward_fetch_range if query.descending else store.fetch_range
        windows = fetch(query.low, query.high, *self._starts(store, query))
        in_order = scan_order(store.builder)
        return _after(windows, store, query, lambda place: in_order(place.key, place.first_ms, 0))

    def _starts(self, store: Any, query: RowQuery) -> tuple[int, int]:
        """Return the first and the last start: of windows that contain `as_of_ms`, or of the query."""
        if query.as_of_ms is None:
            return query.times
        return query.as_of_ms - (store.builder.window_size_ms or 1) + 1, query.as_of_ms


class SessionRows(_WindowedRows):
    """Reads stores with one row per key and session."""

    def of_key(self, store: Any, query: RowQuery) -> Iterator[Entry]:
        """Return the sessions of a key, by end."""
        find = store.backward_find_sessions if query.descending else store.find_sessions
        sign = -1 if store.builder.store == "memory" else 1  # in memory, starts of the same end are in descending order
        sessions = find(query.key, *self._overlap(query))
        return _after(sessions, store, query, lambda place: (place.second_ms, sign * place.first_ms))

    def of_keys(self, store: Any, query: RowQuery) -> Iterator[Entry]:
        """Return the sessions of a range of keys, in the order of the store."""
        find = store.backward_find_sessions_range if query.descending else store.find_sessions_range
        in_order = scan_order(store.builder, latest_start_first=True)
        sessions = find(query.low, query.high, *self._overlap(query))
        return _after(sessions, store, query, lambda place: in_order(place.key, place.second_ms, place.first_ms))

    def _overlap(self, query: RowQuery) -> tuple[int, int]:
        """Return the earliest end and the latest start."""
        return query.times if query.as_of_ms is None else (query.as_of_ms, query.as_of_ms)


class VersionRows:
    """Reads stores with one row per key and version."""

    bounds = _BOUNDS
    identity = ("key", "valid_from")
    is_lookup = False

    def of_key(self, store: Any, query: RowQuery) -> Iterable[Entry]:
        """Return the version of a key that was valid at a time (default: the latest), or those between two times."""
        if query.is_without_span:
            version = store.get(query.key, query.as_of_ms)
            return [] if version is None else [(query.key, version)]
        entries = [(query.key, version) for version in store.history(query.key, query.from_ms, query.to_ms)]
        return _after(entries[::-1] if query.descending else entries, store, query, lambda place: place.first_ms)

    def of_keys(self, store: Any, query: RowQuery) -> Iterable[Entry]:
        """Return these versions of each key in a range."""
        when = LAST_MS if query.as_of_ms is None else query.as_of_ms
        times = (when, when) if query.is_without_span else (query.from_ms, query.to_ms)
        find = store.reverse_range if query.descending else store.range
        after = query.after
        if after is None:
            entries: Iterable[Entry] = find(query.low, query.high, *times)
            return entries
        serde = store.builder.key
        last = serde.deserialize(after.key)
        last_ms = LAST_MS if query.is_without_span else after.first_ms
        low, high = (query.low, last) if query.descending else (last, query.high)
        later_entries = find(low, high, *times)
        return dropwhile(
            lambda entry: entry[1].timestamp <= last_ms and serde.serialize(entry[0]) == after.key, later_entries
        )

    def place(self, builder: StoreBuilder, key: object, value: Any) -> RowPlace:
        """Return the position of a row: its key, and the time from which the version is valid."""
        return RowPlace(_key_bytes(builder, key), value.timestamp)

    def row(self, builder: StoreBuilder, key: object, value: Any) -> Row:
        """Return `key`, `value`, `valid_from` and `valid_to`."""
        times = {"valid_from": value.timestamp, "valid_to": value.valid_to}
        return {"key": shown(key), "value": shown(value.value), **times}


KEY_VALUE_ROWS: RowReader = KeyValueRows()
WINDOW_ROWS: RowReader = WindowRows()
SESSION_ROWS: RowReader = SessionRows()
VERSION_ROWS: RowReader = VersionRows()


def _with_prefix(store: Any, prefix: object, after: RowPlace | None) -> Iterable[Entry]:
    serde = store.builder.key
    if after is None:
        entries: Iterable[Entry] = store.prefix_scan(prefix, serde)
        return entries
    begin = serde.serialize(prefix)
    later_entries = _without_first(store.range(serde.deserialize(after.key)), serde, after.key)
    return takewhile(lambda entry: serde.serialize(entry[0]).startswith(begin), later_entries)


def _without_first(entries: Iterable[Entry], serde: Serde[Any], key: bytes) -> Iterator[Entry]:
    """Return all entries without the first one, if it has this key.

    Keys are compared by their bytes, since some keys, such as NaN, do not equal themselves.
    """
    remaining_entries = iter(entries)
    first = [entry for entry in islice(remaining_entries, 1) if serde.serialize(entry[0]) != key]
    return chain(first, remaining_entries)


def _after(entries: Iterable[Entry], store: Any, query: RowQuery, order: Callable[[RowPlace], Any]) -> Iterator[Entry]:
    """Return the entries after `query.after` in read order.

    The row at `query.after` may no longer exist: a session that grows gets a new key.
    """
    if query.after is None:
        return iter(entries)
    builder = store.builder
    place = query.reader.place
    last = order(query.after)
    if query.descending:
        return dropwhile(lambda entry: order(place(builder, *entry)) >= last, entries)
    return dropwhile(lambda entry: order(place(builder, *entry)) <= last, entries)


def _key_bytes(builder: StoreBuilder, key: object) -> bytes:
    if builder.key is None:
        raise StateError(f"store {builder.name!r} does not declare the type of its keys")
    return builder.key.serialize(key)


def _value_columns(builder: StoreBuilder, value: object) -> Row:
    row = without_headers(value)
    stored_value, times = (row.value, {"timestamp": row.timestamp}) if builder.kind.timestamped else (row, {})
    headers = {"headers": [[name, _HEADER(raw)] for name, raw in headers_of(value)]} if builder.kind.headers else {}
    return {
        "value": shown(stored_value if builder.result is None else builder.result(stored_value)),
        **times,
        **headers,
    }
