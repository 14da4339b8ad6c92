"""How a question of the server is put to each kind of stores, and which rows its answer has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any, NamedTuple

from kstreams.record import Window, Windowed
from kstreams.serdes.plain_forms import from_json, shown
from kstreams.state.api import StoreBuilder

FIRST_MS, LAST_MS = 0, 2**62
Entry = tuple[Any, Any]
Row = dict[str, Any]
Identity = list[Any]
"""What tells a row of a store from all others, as JSON can hold it: where a page ended."""


class RowGone(Exception):
    """The row behind which a page begins is no longer there."""


class Asked(NamedTuple):
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
    allowed : frozenset of str
        The parts of `Asked` that mean something to it.
    is_point : bool
        Whether a key has at most one entry, so that it is found in some microseconds.
    """

    by_key: Callable[[Any, Asked, Identity | None], Iterable[Entry]]
    scan: Callable[[Any, Asked, Identity | None], Iterable[Entry]] | None
    row: Callable[[StoreBuilder, Any, Any], Row]
    allowed: frozenset[str]
    is_point: bool = False


def _value(store: Any, asked: Asked, after: Identity | None) -> list[Entry]:
    found = store.get(asked.key)
    return [] if found is None else [(asked.key, found)]


def _key_values(store: Any, asked: Asked, after: Identity | None) -> Iterable[Entry]:
    serde = store.builder.key
    last = None if after is None else from_json(serde, after[0])
    if asked.prefix is not None:
        return _with_prefix(store, asked.prefix, last)
    low, high = (asked.low, asked.high) if last is None else (last, asked.high)
    if asked.descending:
        low, high = (asked.low, asked.high if last is None else last)
    entries: Iterable[Entry] = (store.reverse_range if asked.descending else store.range)(low, high)
    return entries if last is None else _without(entries, last)


def _with_prefix(store: Any, prefix: Any, last: Any) -> Iterable[Entry]:
    serde = store.builder.key
    if last is None:
        found: Iterable[Entry] = store.prefix_scan(prefix, serde)
        return found
    begin = serde.serialize(prefix)
    return takewhile(lambda entry: serde.serialize(entry[0]).startswith(begin), _without(store.range(last), last))


def _without(entries: Iterable[Entry], last: Any) -> Iterator[Entry]:
    return (entry for entry in entries if entry[0] != last)


def _windows_of_key(store: Any, asked: Asked, after: Identity | None) -> Iterator[Entry]:
    size = store.builder.window_size_ms or 0
    found = (store.backward_fetch if asked.descending else store.fetch)(asked.key, *_starts(store, asked))
    entries = ((Windowed(asked.key, Window(start, start + size)), value) for start, value in found)
    return _behind(entries, after)


def _windows(store: Any, asked: Asked, after: Identity | None) -> Iterator[Entry]:
    backward = "backward_" if asked.descending else ""
    if asked.low is None and asked.high is None:
        found = getattr(store, f"{backward}fetch_all")(*_starts(store, asked))
    else:
        found = getattr(store, f"{backward}fetch_range")(asked.low, asked.high, *_starts(store, asked))
    return _behind(found, after)


def _starts(store: Any, asked: Asked) -> tuple[int, int]:
    """From and to which start of windows: those that contain a time, or the times asked for."""
    if asked.as_of_ms is None:
        return asked.times
    return asked.as_of_ms - (store.builder.window_size_ms or 1) + 1, asked.as_of_ms


def _sessions_of_key(store: Any, asked: Asked, after: Identity | None) -> Iterator[Entry]:
    find = store.backward_find_sessions if asked.descending else store.find_sessions
    return _behind(find(asked.key, *_overlap(asked)), after)


def _sessions(store: Any, asked: Asked, after: Identity | None) -> Iterator[Entry]:
    find = store.backward_find_sessions_range if asked.descending else store.find_sessions_range
    return _behind(find(asked.low, asked.high, *_overlap(asked)), after)


def _overlap(asked: Asked) -> tuple[int, int]:
    return asked.times if asked.as_of_ms is None else (asked.as_of_ms, asked.as_of_ms)


def _versions(store: Any, asked: Asked, after: Identity | None) -> Iterable[Entry]:
    if asked.from_ms is None and asked.to_ms is None:
        found = store.get(asked.key, asked.as_of_ms)
        return [] if found is None else [(asked.key, found)]
    entries = [(asked.key, each) for each in store.history(asked.key, asked.from_ms, asked.to_ms)]
    return _behind(entries[::-1] if asked.descending else entries, after)


def _versions_of_keys(store: Any, asked: Asked, after: Identity | None) -> Iterable[Entry]:
    """Of each key the latest version, that of a time, or those between two times."""
    is_one = asked.from_ms is None and asked.to_ms is None
    when = LAST_MS if asked.as_of_ms is None else asked.as_of_ms
    times = (when, when) if is_one else (asked.from_ms, asked.to_ms)
    find = store.reverse_range if asked.descending else store.range
    if after is None:
        found: Iterable[Entry] = find(asked.low, asked.high, *times)
        return found
    last, since = from_json(store.builder.key, after[0]), after[1]
    low, high = (asked.low, last) if asked.descending else (last, asked.high)
    left = find(low, high, *times)
    return (entry for entry in left if entry[0] != last or (not is_one and entry[1].timestamp > since))


def _behind(entries: Iterable[Entry], after: Identity | None) -> Iterator[Entry]:
    """The entries behind a row, which has to be there still: else nobody knows where the next page begins."""
    left = iter(entries)
    if after is None or any(_place(entry) == after for entry in left):
        return left
    raise RowGone


def _place(entry: Entry) -> Identity:
    key, value = entry
    window = getattr(key, "window", None)
    return [shown(key), value.timestamp] if window is None else [shown(key.key), *window]


def _key_value_row(builder: StoreBuilder, key: Any, value: Any) -> Row:
    return {"key": shown(key), **_value_columns(builder, value)}


def _windowed_row(builder: StoreBuilder, key: Any, value: Any) -> Row:
    window = {"window_start": key.window.start_ms, "window_end": key.window.end_ms}
    return {"key": shown(key.key), **window, **_value_columns(builder, value)}


def _version_row(builder: StoreBuilder, key: Any, value: Any) -> Row:
    times = {"valid_from": value.timestamp, "valid_to": value.valid_to}
    return {"key": shown(key), "value": shown(value.value), **times}


def _value_columns(builder: StoreBuilder, value: Any) -> Row:
    kept, times = (value.value, {"timestamp": value.timestamp}) if builder.kind.timestamped else (value, {})
    return {"value": shown(kept if builder.result is None else builder.result(kept)), **times}


def identity(row: Mapping[str, Any]) -> Identity:
    """What tells a row from all others."""
    return [row[name] for name in ("key", "window_start", "window_end", "valid_from") if name in row]


_KEY_VALUE = StoreReading(_value, _key_values, _key_value_row, frozenset({"low", "high", "prefix", "descending"}), True)
_TIMES = frozenset({"from_ms", "to_ms", "as_of_ms", "descending"})
_WINDOW = StoreReading(_windows_of_key, _windows, _windowed_row, _TIMES | {"low", "high"})
READINGS: Mapping[str, StoreReading] = {
    "key-value": _KEY_VALUE,
    "timestamped-key-value": _KEY_VALUE,
    "window": _WINDOW,
    "timestamped-window": _WINDOW,
    "session": StoreReading(_sessions_of_key, _sessions, _windowed_row, _TIMES | {"low", "high"}),
    "versioned": StoreReading(_versions, _versions_of_keys, _version_row, _TIMES | {"low", "high"}),
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
    after : Identity or None
    most : int
    kinds : tuple of str
        Those that are read so.
    """

    find: Callable[[Any, Asked, Identity | None], Iterable[Entry]]
    asked: Asked
    after: Identity | None
    most: int | None
    kinds: tuple[str, ...]

    def ask(self, store: Any) -> list[Entry] | None:
        """The entries; None where the row is gone behind which they begin."""
        try:
            return list(islice(self.find(store, self.asked, self.after), self.most))
        except RowGone:
            return None


@dataclass(frozen=True, slots=True)
class CountQuery:
    """A typed query of one partition: roughly how many entries it has."""

    kinds: tuple[str, ...] = ("key-value", "timestamped-key-value")

    def ask(self, store: Any) -> int:
        """See `kstreams.state.queries.StateQuery`."""
        count: int = store.approximate_num_entries()
        return count
