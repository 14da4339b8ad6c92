"""The emission of a table's updates: each update immediately, or with the record cache the last one per key and flush.

The cache buffers emissions only: stores always have the latest value. As in Kafka Streams, a cached update has the
headers of the record that caused it. Updates leave the cache in the order of the last updates of their keys. A key that
was added and deleted between two flushes has no update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, islice
from typing import Any, Protocol, TypeAlias

from kstreams.errors import StateError
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.topology.operator import Forward
from kstreams.record import Change, Headers, Window, Windowed
from kstreams.state.rows.entries import RowWeight

make_tuple: Callable[[type, tuple[Any, ...]], Any] = tuple.__new__
"""Creates a named tuple in half the time of its constructor: `make_tuple(Change, (new, old, True))`."""

Emit: TypeAlias = Callable[[Any, Any, Any, int, Headers], None]
"""`emit(key, new, old, timestamp, headers)` passes on an update that was written to the store.

`old` is the value that the store had before.
"""

Update: TypeAlias = tuple[int, Any, Window | None, Any, Any, int, Headers]
"""A pending update: its sequence number, key and window, new and old value, timestamp and headers."""

Identity: TypeAlias = Callable[[Any], Any]
"""Returns what identifies a key, if equal keys may have different bytes or keys cannot be hashed."""

PendingUpdates: TypeAlias = dict[Window | None, dict[Any, Update]]

_END: Any = object()
_SAMPLE = 16  # the number of updates from which the size of all is estimated
_SHARED = (int, str, bytes, float)


@dataclass(frozen=True, slots=True)
class MaterializedRows:
    """The rows of a table, with the settings of their updates.

    Parameters
    ----------
    store : str
        The name of the store.
    caching : bool
        True if the table uses the record cache, unless the application has turned it off.
    sends_old : bool
        True if updates have old values beside new ones.
    versioned : bool
        True if the store has the history of each row.
    shared : bool
        True if several operators write the store.
    """

    store: str
    caching: bool = True
    sends_old: bool = False
    versioned: bool = False
    shared: bool = False

    def uses_cache(self, context: OperatorContext) -> bool:
        """Return whether updates pass through the record cache in this application."""
        return self.caching and context.caching


class ListedMembers(Protocol):
    """The members of the groups of one task, as results list them."""

    def enter(self, key: Any) -> None:
        """Go to the group of a key of the table."""
        ...


class MemberStore(Protocol):
    """Where the members of groups are."""

    def open(self, context: OperatorContext) -> ListedMembers:
        """Return the members in one task."""
        ...


@dataclass(frozen=True, slots=True)
class Results:
    """What others see of the states of an aggregation.

    Parameters
    ----------
    function : callable
        `function(state)`, or `function(state, members)` if results list the members of groups.
    members : MemberStore, optional
        Where the members are, if results list them.
    """

    function: Callable[..., Any]
    members: MemberStore | None = None

    def bind(self, context: OperatorContext) -> Callable[[Any, Any], Any]:
        """Return `result(key of the table, state)` in one task."""
        function = self.function
        if self.members is None:
            return lambda key, state: function(state)
        members = self.members.open(context)

        def listed(key: object, state: object) -> Any:
            members.enter(key)
            return function(state, members)

        return listed

    def of_queries(self, store: str) -> Callable[[Any], Any]:
        """Return the function by which queries of the store read a state."""
        return self.function if self.members is None else partial(_raise_listed, store)


def _raise_listed(store: str, state: object) -> Any:
    raise StateError(
        f"the lists of collect() are rows beside the store {store!r}, which its queries do not read: add "
        "map_values(..., materialized=) after the aggregation, and query that store"
    )


def emit_nothing(key: object, new: object, old: object, timestamp: int, headers: Headers) -> None:
    """Emit nothing: the `emit` of windows that are emitted when they close."""
    return None


def emitter(
    context: OperatorContext,
    forward: Forward,
    table_rows: MaterializedRows,
    *,
    result: Results | None = None,
    of_windows: bool = False,
) -> Emit:
    """Return the `emit` of a table node in one task.

    Parameters
    ----------
    context : OperatorContext
    forward : callable
    table_rows : MaterializedRows
        Operators that write the same store, and have the same children, share its record cache.
    result : Results, optional
        The values to forward, if they are not what is stored.
    of_windows : bool
        True if the updates have `Windowed` keys.
    """
    at_once = _at_once(forward, table_rows.sends_old, None if result is None else result.bind(context))
    if not table_rows.uses_cache(context):
        return at_once
    store = table_rows.store
    identity = context.key_identity(store)
    return _cache_of(store, context, at_once, _within_window(identity) if of_windows else identity)(None)


def window_emitter(
    context: OperatorContext,
    forward: Forward,
    table_rows: MaterializedRows,
    size_ms: int,
    *,
    result: Results | None = None,
) -> Callable[[int], Emit]:
    """Return the `emit` of a windowed table by the start (ms) of the window. Each serves until the next flush.

    The parameters are those of `emitter`.
    """
    at_once = _at_once(forward, table_rows.sends_old, None if result is None else result.bind(context))
    store = table_rows.store
    is_cached = table_rows.uses_cache(context)
    of_window = _cache_of(store, context, at_once, context.key_identity(store)) if is_cached else _uncached(at_once)

    emits: dict[int, Emit] = {}

    def of_start(start_ms: int) -> Emit:
        emit = emits.get(start_ms)
        if emit is None:
            emit = emits[start_ms] = of_window(Window(start_ms, start_ms + size_ms))
        return emit

    context.at_flush(emits.clear)
    return of_start


def _uncached(at_once: Emit) -> Callable[[Window], Emit]:
    def of_window(window: Window) -> Emit:
        def emit(key: object, new: object, old: object, timestamp: int, headers: Headers) -> None:
            at_once(make_tuple(Windowed, (key, window)), new, old, timestamp, headers)

        return emit

    return of_window


def _at_once(forward: Forward, sends_old: bool, result: Callable[[Any, Any], Any] | None) -> Emit:
    def emit_new(key: object, new: object, old: object, timestamp: int, headers: Headers) -> None:
        forward(key, make_tuple(Change, (new, None, True)), timestamp)

    def emit_both(key: object, new: object, old: object, timestamp: int, headers: Headers) -> None:
        forward(key, make_tuple(Change, (new, old, True)), timestamp)

    emit = emit_both if sends_old else emit_new
    return emit if result is None else _with_results(emit, result, sends_old)


def _with_results(emit: Emit, result: Callable[[Any, Any], Any], sends_old: bool) -> Emit:
    def emit_results(key: object, new: object, old: object, timestamp: int, headers: Headers) -> None:
        old_result = None if old is None or not sends_old else result(key, old)
        emit(key, None if new is None else result(key, new), old_result, timestamp, headers)

    return emit_results


def _within_window(identity: Identity | None) -> Identity | None:
    """Return the identity of `Windowed` keys for the identity of their keys."""
    return None if identity is None else lambda windowed: (identity(windowed[0]), windowed[1])


def _cache_of(
    store: str, context: OperatorContext, at_once: Emit, identity: Identity | None
) -> Callable[[Window | None], Emit]:
    """Return the record cache of a store, by window.

    Operators that share it flush it together, in the place of the last one in the topology, which is bound first.
    """
    return context.shared(f"record cache of {store}", lambda: _record_cache(context, at_once, identity))


class _ByIdentity(dict[Any, Update]):
    """Updates by the identities of their keys, usually their bytes, for keys that do not identify themselves."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(self._identity(key), default)

    def __setitem__(self, key: object, update: Update) -> None:
        super().__setitem__(self._identity(key), update)

    def __delitem__(self, key: object) -> None:
        super().__delitem__(self._identity(key))


def _record_cache(
    context: OperatorContext, at_once: Emit, identity: Identity | None
) -> Callable[[Window | None], Emit]:
    """Create a record cache. It groups updates by window, so that no record needs a hash of key and window."""
    pending_updates: PendingUpdates = {}
    updates_by_key: Callable[[], dict[Any, Update]] = dict if identity is None else partial(_ByIdentity, identity)
    current = context.current
    next_number = count().__next__
    # One slot is that of the dict; the tuple of an update takes as much as two.
    weight = RowWeight(lambda: _sample(pending_updates), slots=3)

    def num_bytes() -> int:
        updates = sum(map(len, pending_updates.values()))
        return updates * weight.of(updates) if updates else 0

    def of_window(window: Window | None) -> Emit:
        pending = pending_updates.setdefault(window, updates_by_key())
        pending_update = pending.get

        def emit(key: object, new: object, old: object, timestamp: int, headers: Headers) -> None:
            update = pending_update(key)
            if update is not None:
                old = update[4]
                if new is None and old is None:  # added and deleted since the last flush
                    del pending[key]
                    return
            # A sequence number costs less than moving the key to the end of the dict.
            pending[key] = (next_number(), key, window, new, old, timestamp, headers)

        return emit

    def flush() -> None:
        updates = sorted(chain.from_iterable(pending.values() for pending in pending_updates.values()), reverse=True)
        for window, pending in list(pending_updates.items()):
            pending.clear()
            if window is not None:
                del pending_updates[window]
        before = current.headers
        _emit_all(context.sending_meanwhile(_drained(updates)), at_once, current)
        current.headers = before
        current.emitted_key = None

    context.at_flush(flush)
    context.count_bytes(num_bytes)
    return of_window


def _emit_all(updates: Iterable[Update], at_once: Emit, current: CurrentRecord) -> None:
    for _, key, window, new, old, timestamp, headers in updates:
        current.headers = headers
        if new is not None or old is not None:
            current.emitted_key = emitted = key if window is None else make_tuple(Windowed, (key, window))
            at_once(emitted, new, old, timestamp, headers)


def _drained(updates: list[Update]) -> Iterator[Update]:
    """Yield the updates from the last one to the first, and remove each from the list, which frees its memory."""
    updates.insert(0, _END)
    return iter(updates.pop, _END)


def _sample(pending_updates: PendingUpdates) -> list[tuple[Any, ...]]:
    """Return the objects of some updates that are not in the store as well."""
    last = islice(
        chain.from_iterable(reversed(pending.values()) for pending in reversed(pending_updates.values())), _SAMPLE
    )
    return [(number, None if type(new) in _SHARED else new, old) for number, _, _, new, old, *_ in last]
