"""How a question of the server is put to each kind of stores, and which rows its answer has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, dropwhile, islice, takewhile
from typing import Annotated, Any, NamedTuple

import msgspec

from kstreams.errors import StateError
from kstreams.record import Window, Windowed
from kstreams.serdes.byte_kinds import decoder, shown
from kstreams.state.api import StoreBuilder
from kstreams.state.rows.scan_order import scan_order
from kstreams.state.values_with_headers import headers_of, without_headers

_HEADER = decoder("auto")  # as `kstreams consume` shows them
FIRST_MS = 0
LAST_MS = 2**62
Entry = tuple[Any, Any]
Row = dict[str, Any]
Number = Annotated[int, msgspec.Meta(ge=FIRST_MS, le=LAST_MS)]


class RowPlace(msgspec.Struct, frozen=True, array_like=True):
    """Where a row is in the order of its store: where a page ended, whether or not the row is still there.

    Parameters
    ----------
    key : bytes
        Serialized: not every key has a form in JSON that is read back as the same key.
    first_ms, second_ms : int
        Start and end of a window; of a version, from when it holds.
    """

    key: bytes
    first_ms: Number = 0
    second_ms: Number = 0


class StoreQueryArguments(NamedTuple):
    """What is asked of a store; keys are objects already."""

    key: Any = None
    low: Any = None
    high: Any = None
    prefix: Any = None
    from_ms: int | None = None
    to_ms: int | None = None
    as_of_ms: int | None = None
    descending: bool = False

    @property
    def times(self) -> tuple[int, int]:
        """From and to, both included."""
        return FIRST_MS if self.from_ms is None else self.from_ms, LAST_MS if self.to_ms is None else self.to_ms


class StoreReading(NamedTuple):
    """How stores of a kind are read.

    Parameters
    ----------
    by_key, scan : callable or None
        `(store, asked, after)`: its entries, of a key or of many, those behind a row (None: from the first); None where
        a kind has no such question.
    row : callable
        `(builder, key, value)`: an entry as a row.
    place : callable
        `(builder, key, value)`: where an entry is.
    allowed : frozenset of str
        The parts of `StoreQueryArguments` that mean something to it.
    is_point : bool
        Whether a key has at most one entry, so that it is found in some microseconds.
    """

    by_key: Callable[[Any, StoreQueryArguments, RowPlace | None], Iterable[Entry]]
    scan: Callable[[Any, StoreQueryArguments, RowPlace | None], Iterable[Entry]] | None
    row: Callable[[StoreBuilder, Any, Any], Row]
    place: Callable[[StoreBuilder, Any, Any], RowPlace]
    allowed: frozenset[str]
    is_point: bool = False


def _value(store: Any, asked: StoreQueryArguments, after: RowPlace | None) -> list[Entry]:
    value = store.get(asked.key)
    return [] if value is None else [(asked.key, value)]


def _key_values(store: Any, asked: StoreQueryArguments, after: RowPlace | None) -> Iterable[Entry]:
    serde = store.builder.key
    last = None if after is None else serde.deserialize(after.key)
    if asked.prefix is not None:
        return _with_prefix(store, asked.prefix, after)
    low, high = (asked.low, asked.high) if last is None else (last, asked.high)
    if asked.descending:
        low = asked.low
        high = asked.high if last is None else last
    entries: Iterable[Entry] = (store.reverse_range if asked.descending else store.range)(low, high)
    return entries if after is None else _without(entries, serde, after.key)


def _with_prefix(store: Any, prefix: Any, after: RowPlace | None) -> Iterable[Entry]:
    serde = store.builder.key
    if after is None:
        entries: Iterable[Entry] = store.prefix_scan(prefix, serde)
        return entries
    begin = serde.serialize(prefix)
    later_entries = store.range(serde.deserialize(after.key))
    return takewhile(
        lambda entry: serde.serialize(entry[0]).startswith(begin), _without(later_entries, serde, after.key)
    )


def _without(entries: Iterable[Entry], serde: Any, last: bytes) -> Iterator[Entry]:
    """All but the first entry, where that has this key: bytes tell, since some keys do not equal themselves."""
    remaining_entries = iter(entries)
    first = [entry for entry in islice(remaining_entries, 1) if serde.serialize(entry[0]) != last]
    return chain(first, remaining_entries)


def _windows_of_key(store: Any, asked: StoreQueryArguments, after: RowPlace | None) -> Iterator[Entry]:
    size = store.builder.window_size_ms or 0
    windows = (store.backward_fetch if asked.descending else store.fetch)(asked.key, *_starts(store, asked))
    entries = ((Windowed(asked.key, Window(start, start + size)), value) for start, value in windows)
    return _behind(entries, after, lambda at: at.first_ms, store, asked)


def _windows(store: Any, asked: StoreQueryArguments, after: RowPlace | None) -> Iterator[Entry]:
    backward = "backward_" if asked.descending else ""
    if asked.low is None and asked.high is None:
        windows = getattr(store, f"{backward}fetch_all")(*_starts(store, asked))
    else:
        windows = getattr(store, f"{backward}fetch_range")(asked.low, asked.high, *_starts(store, asked))
    in_order = scan_order(store.builder)
    return _behind(windows, after, lambda at: in_order(at.key, at.first_ms, 0), store, asked)


def _starts(store: Any, asked: StoreQueryArguments) -> tuple[int, int]:
    """From and to which start of windows: those that contain a time, or the times asked for."""
    if asked.as_of_ms is None:
        return asked.times
    return asked.as_of_ms - (store.builder.window_size_ms or 1) + 1, asked.as_of_ms


def _sessions_of_key(store: Any, asked: StoreQueryArguments, after: RowPlace | None) -> Iterator[Entry]:
    find = store.backward_find_sessions if asked.descending else store.find_sessions
    sign = -1 if store.builder.store == "memory" else 1  # there the starts of one end go backwards
    sessions = find(asked.key, *_overlap(asked))
    return _behind(sessions, after, lambda at: (at.second_ms, sign * at.first_ms), store, asked)


def _sessions(store: Any, asked: StoreQueryArguments, after: RowPlace | None) -> Iterator[Entry]:
    find = store.backward_find_sessions_range if asked.descending else store.find_sessions_range
    in_order = scan_order(store.builder, latest_start_first=True)
    sessions = find(asked.low, asked.high, *_overlap(asked))
    return _behind(sessions, after, lambda at: in_order(at.key, at.second_ms, at.first_ms), store, asked)


def _overlap(asked: StoreQueryArguments) -> tuple[int, int]:
    return asked.times if asked.as_of_ms is None else (asked.as_of_ms, asked.as_of_ms)


def _versions(store: Any, asked: StoreQueryArguments, after: RowPlace | None) -> Iterable[Entry]:
    if asked.from_ms is None and asked.to_ms is None:
        version = store.get(asked.key, asked.as_of_ms)
        return [] if version is None else [(asked.key, version)]
    entries = [(asked.key, record) for record in store.history(asked.key, asked.from_ms, asked.to_ms)]
    return _behind(entries[::-1] if asked.descending else entries, after, lambda at: at.first_ms, store, asked)


def _versions_of_keys(store: Any, asked: StoreQueryArguments, after: RowPlace | None) -> Iterable[Entry]:
    """Of each key the latest version, that of a time, or those between two times."""
    is_one = asked.from_ms is None and asked.to_ms is None
    when = LAST_MS if asked.as_of_ms is None else asked.as_of_ms
    times = (when, when) if is_one else (asked.from_ms, asked.to_ms)
    find = store.reverse_range if asked.descending else store.range
    if after is None:
        entries: Iterable[Entry] = find(asked.low, asked.high, *times)
        return entries
    serde = store.builder.key
    since = LAST_MS if is_one else after.first_ms
    last = serde.deserialize(after.key)
    low, high = (asked.low, last) if asked.descending else (last, asked.high)
    later_entries = find(low, high, *times)
    return dropwhile(
        lambda entry: entry[1].timestamp <= since and serde.serialize(entry[0]) == after.key, later_entries
    )


def _behind(
    entries: Iterable[Entry],
    after: RowPlace | None,
    order: Callable[[RowPlace], Any],
    store: Any,
    asked: StoreQueryArguments,
) -> Iterator[Entry]:
    """The entries behind a place; the row of it may be gone since, as sessions go that grow."""
    if after is None:
        return iter(entries)
    builder = store.builder
    last = order(after)
    place = READINGS[builder.kind.name].place
    if asked.descending:
        return dropwhile(lambda entry: order(place(builder, *entry)) >= last, entries)
    return dropwhile(lambda entry: order(place(builder, *entry)) <= last, entries)


def _key_place(builder: StoreBuilder, key: object, value: object) -> RowPlace:
    return RowPlace(_bytes(builder, key))


def _windowed_place(builder: StoreBuilder, key: Any, value: Any) -> RowPlace:
    return RowPlace(_bytes(builder, key.key), *key.window)


def _version_place(builder: StoreBuilder, key: Any, value: Any) -> RowPlace:
    return RowPlace(_bytes(builder, key), value.timestamp)


def _bytes(builder: StoreBuilder, key: object) -> bytes:
    if builder.key is None:
        raise StateError(f"store {builder.name!r} does not declare the type of its keys")
    return builder.key.serialize(key)


def _key_value_row(builder: StoreBuilder, key: object, value: object) -> Row:
    return {"key": shown(key), **_value_columns(builder, value)}


def _windowed_row(builder: StoreBuilder, key: Any, value: Any) -> Row:
    window = {"window_start": key.window.start_ms, "window_end": key.window.end_ms}
    return {"key": shown(key.key), **window, **_value_columns(builder, value)}


def _version_row(builder: StoreBuilder, key: Any, value: Any) -> Row:
    times = {"valid_from": value.timestamp, "valid_to": value.valid_to}
    return {"key": shown(key), "value": shown(value.value), **times}


def _value_columns(builder: StoreBuilder, value: object) -> Row:
    row = without_headers(value)
    stored_value, times = (row.value, {"timestamp": row.timestamp}) if builder.kind.timestamped else (row, {})
    headers = {"headers": [[name, _HEADER(raw)] for name, raw in headers_of(value)]} if builder.kind.headers else {}
    return {
        "value": shown(stored_value if builder.result is None else builder.result(stored_value)),
        **times,
        **headers,
    }


def identity(row: Row) -> Row:
    """What tells a row from all others."""
    return {name: row[name] for name in ("key", "window_start", "window_end", "valid_from") if name in row}


_KEY_VALUE = StoreReading(
    _value, _key_values, _key_value_row, _key_place, frozenset({"low", "high", "prefix", "descending"}), True
)
_TIMES = frozenset({"from_ms", "to_ms", "as_of_ms", "descending"})
_WINDOW = StoreReading(_windows_of_key, _windows, _windowed_row, _windowed_place, _TIMES | {"low", "high"})
_SESSION = StoreReading(_sessions_of_key, _sessions, _windowed_row, _windowed_place, _TIMES | {"low", "high"})
READINGS: Mapping[str, StoreReading] = {
    "key-value": _KEY_VALUE,
    "timestamped-key-value": _KEY_VALUE,
    "window": _WINDOW,
    "timestamped-window": _WINDOW,
    "session": _SESSION,
    "timestamped-key-value-with-headers": _KEY_VALUE,
    "timestamped-window-with-headers": _WINDOW,
    "session-with-headers": _SESSION,
    "versioned": StoreReading(_versions, _versions_of_keys, _version_row, _version_place, _TIMES | {"low", "high"}),
}
"""By kind of store; those of other kinds give no answers here."""


@dataclass(frozen=True, slots=True)
class RowsQuery:
    """A typed query of one partition: at most so many rows (None: all) behind a row.

    Parameters
    ----------
    find : callable
        Of `StoreReading`.
    asked : Asked
    after : RowPlace or None
    most : int
    kinds : tuple of str
        Those that are read so.
    """

    find: Callable[[Any, StoreQueryArguments, RowPlace | None], Iterable[Entry]]
    asked: StoreQueryArguments
    after: RowPlace | None
    most: int | None
    kinds: tuple[str, ...]

    def ask(self, store: object) -> list[Entry]:
        """The entries."""
        return list(islice(self.find(store, self.asked, self.after), self.most))


@dataclass(frozen=True, slots=True)
class CountQuery:
    """A typed query of one partition: roughly how many entries it has."""

    kinds: tuple[str, ...] = ("key-value", "timestamped-key-value", "timestamped-key-value-with-headers")

    def ask(self, store: Any) -> int:
        """See `kstreams.state.queries.StateQuery`."""
        count: int = store.approximate_num_entries()
        return count
