"""`StoreKind` describes a kind of stores, `RowReader` reads the rows of a kind, `StoreBuilder` describes one store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Annotated, Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from kstreams.errors import StateError
from kstreams.serdes import Serde


class CustomStore(Protocol):
    """A store that the user implements: any object that can be restored from the records that it logged.

    It is created with its log: a function that takes a key, a value (None: deleted) and optionally a timestamp in ms.
    The last logged record per key and commit is written to its changelog. If it has a method `close`, that is called.
    """

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Apply a record of the changelog, in order; called before all other methods."""
        ...


Written: TypeAlias = Callable[..., tuple[Any, Any]]
"""Returns the key and the value to be serialized from the arguments of a write method."""
Entry: TypeAlias = tuple[Any, Any]
"""A key and a value as a store returns them."""
Row: TypeAlias = dict[str, Any]
"""An entry by column, in a form that JSON can encode."""

FIRST_MS = 0
LAST_MS = 2**62
_Ms = Annotated[int, msgspec.Meta(ge=FIRST_MS, le=LAST_MS)]


class RowPlace(msgspec.Struct, frozen=True, array_like=True):
    """The position of a row in the order of its store. The row may no longer exist.

    Parameters
    ----------
    key : bytes
        The serialized key, because a key in JSON may not decode to the same key.
    first_ms, second_ms : int
        The start and the end of a window, or the time from which a version is valid.
    """

    key: bytes
    first_ms: _Ms = 0
    second_ms: _Ms = 0


@runtime_checkable  # the DSL checks the fields of a `StoreKind`
class RowReader(Protocol):
    """Reads the rows of a kind of stores, for typed queries, the query server and the command line."""

    @property
    def bounds(self) -> frozenset[str]:
        """The bounds that a query may set, as fields of `RowQuery`. It may always set `key` and `descending`."""
        ...

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that identify a row."""
        ...

    @property
    def is_lookup(self) -> bool:
        """True if a key has at most one row, which `get` returns in some microseconds."""
        ...

    def of_key(self, store: Any, query: RowQuery) -> Iterable[Entry]:
        """Return the entries of `query.key` after `query.after`."""
        ...

    def of_keys(self, store: Any, query: RowQuery) -> Iterable[Entry]:
        """Return the entries of all keys within the bounds, after `query.after`."""
        ...

    def place(self, builder: StoreBuilder, key: Any, value: Any) -> RowPlace:
        """Return the position of an entry."""
        ...

    def row(self, builder: StoreBuilder, key: Any, value: Any) -> Row:
        """Return an entry by column."""
        ...


class RowQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A `StateQuery` for the rows of one key, or of all keys within bounds.

    Parameters
    ----------
    reader : RowReader
    key : Any
        None for all keys.
    low, high : Any
        The first and the last key. None stands for no bound.
    prefix : Any
        Only keys whose bytes begin with those of the prefix. None for all keys.
    from_ms, to_ms : int or None
        The first and the last time. None stands for no bound.
    as_of_ms : int or None
        Only versions that were valid at this time, or windows and sessions that contain it.
    descending : bool
    after : RowPlace or None
        The position of the row before the first one. None to begin with the first row.
    limit : int or None
        The greatest number of rows. None for all rows.
    """

    reader: RowReader
    key: Any = None
    low: Any = None
    high: Any = None
    prefix: Any = None
    from_ms: int | None = None
    to_ms: int | None = None
    as_of_ms: int | None = None
    descending: bool = False
    after: RowPlace | None = None
    limit: int | None = None

    @property
    def kinds(self) -> Collection[str]:
        """The kinds of stores that can answer, as in `kstreams.state.queries.StateQuery`."""
        return kinds_read_by(self.reader)

    @property
    def times(self) -> tuple[int, int]:
        """The first and the last time."""
        return FIRST_MS if self.from_ms is None else self.from_ms, LAST_MS if self.to_ms is None else self.to_ms

    @property
    def is_without_span(self) -> bool:
        """True if the query sets neither `from_ms` nor `to_ms`."""
        return self.from_ms is None and self.to_ms is None

    def read(self, store: object) -> list[Entry]:
        """Return the entries of a partition."""
        read = self.reader.of_keys if self.key is None else self.reader.of_key
        return list(islice(read(store, self), self.limit))


def _unknown_key(builder: StoreBuilder) -> Serde | None:
    return None


def _compacted(builder: StoreBuilder) -> Mapping[str, str]:
    return {"cleanup.policy": "compact"}


def _as_it_is(changes: object) -> Any:
    return changes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StoreKind:
    """One kind of stores.

    Parameters
    ----------
    name : str
        The name in metadata and pictures, such as `session`.
    open : callable
        `(builder, family, budget, *extra_families) -> LiveStore`: creates the store; usually its class. The store
        decides how its keys and values are encoded (`kstreams.state.codecs`).
    view : type
        The class of `kstreams.state.read_only_store` with the read methods for queries.
    writes : mapping of str to callable or None
        The write methods. A function of the arguments returns the key and the value to be serialized, so that an error
        handler is called at once if the serde cannot write them; None if the method has no such pair.
    times : mapping of str to mapping of int to callable
        By method and position of the argument, the conversion of a user's times (`timed_store.py`).
    timestamped : bool
        True if values have a timestamp (`ValueAndTimestamp`, `ValueTimestampHeaders`), which is that of the changelog
        record.
    headers : bool
        True if values have headers (`ValueTimestampHeaders`, `AggregationWithHeaders`), which are those of the
        changelog record.
    changelog_key : callable
        `(builder) -> Serde or None`: the serde of the keys in the changelog, with which tools show the keys.
    changelog_config : callable
        `(builder) -> mapping`: cleanup policy and retention of the changelog.
    current_form : callable
        `(changes) -> Changes`: converts changelog records of an older format to the present format.
    extra_families : tuple of str
        The column families other than that of the rows.
    time_in_key : int or None
        The position of a row's time (8 bytes, big endian) in the keys of the changelog, counted from their end; None if
        rows do not expire.
    reads_committed : bool
        True if a second, read-only store over the same bytes supports all methods of the view: then queries may read it
        as of the last commit, in their own threads.
    rows : RowReader or None
        Reads rows for typed queries, the query server and the command line: usually a reader of
        `kstreams.state.row_readers`. None if they cannot read the kind.
    table : callable or None
        Returns the rows as an Arrow table (`kstreams.state.tables.store_tables`); None if there is no such form.
    """

    name: str
    open: Callable[..., Any]
    view: type[Any]
    writes: Mapping[str, Written | None] = field(default_factory=dict)
    times: Mapping[str, Mapping[int, Callable[[Any], Any]]] = field(default_factory=dict)
    timestamped: bool = False
    headers: bool = False
    changelog_key: Callable[[StoreBuilder], Serde | None] = _unknown_key
    changelog_config: Callable[[StoreBuilder], Mapping[str, str]] = _compacted
    current_form: Callable[[Any], Any] = _as_it_is
    extra_families: tuple[str, ...] = ()
    time_in_key: int | None = None
    reads_committed: bool = False
    rows: RowReader | None = None
    table: Callable[[Any, int | None], Any] | None = None

    def __repr__(self) -> str:
        return f"<StoreKind {self.name}>"


_BY_NAME: dict[str, StoreKind] = {}


def register_store_kind(kind: StoreKind) -> StoreKind:
    """Register a kind of stores by its name, for `Stores.of_kind`.

    Parameters
    ----------
    kind : StoreKind

    Returns
    -------
    StoreKind
        The kind.

    Raises
    ------
    StateError
        If another kind has this name.

    Examples
    --------
    >>> from kstreams.state import StoreKind, Stores, register_store_kind
    >>> from kstreams.state.kinds.key_value import LiveKeyValueStore
    >>> from kstreams.state.read_only_store import ReadOnlyKeyValueStore
    >>> class Totals(LiveKeyValueStore):
    ...     def add(self, key, amount):
    ...         self.put(key, (self.get(key) or 0) + amount)
    >>> totals = register_store_kind(StoreKind(name="totals", open=Totals, view=ReadOnlyKeyValueStore))
    >>> Stores.of_kind("totals", "sales", key=str, value=int).kind
    <StoreKind totals>
    """
    if _BY_NAME.setdefault(kind.name, kind) is not kind:
        raise StateError(f"a kind of stores is called {kind.name!r} already: give this one another name")
    return kind


def store_kind(name: str) -> StoreKind:
    """Return the kind with a name.

    Raises
    ------
    StateError
        If no kind has this name.
    """
    if name not in _BY_NAME:
        raise StateError(f"there is no kind of stores {name!r}; there are {', '.join(sorted(_BY_NAME))}")
    return _BY_NAME[name]


def kinds_read_by(reader: RowReader, *, timestamped: bool = False) -> Collection[str]:
    """Return the names of the kinds whose rows a reader reads; if `timestamped`, only kinds with timestamps."""
    return [kind.name for kind in _BY_NAME.values() if kind.rows is reader and (kind.timestamped or not timestamped)]


@dataclass(frozen=True, slots=True)
class StoreBuilder:
    """The description of a store. `Stores` creates it, and a task opens the store.

    Times are milliseconds. `store` is "rocksdb" or "memory". `changelog_config` overrides settings of the changelog.
    The changelog of a store with a `source_topic` is that topic of the user. A `time_ordered` store is for emission on
    close: `all` hides expired windows at once, but the windows that close are still found. The windows of a `sparse`
    store rarely share a start, so that its rows are grouped by key. `options` are for kinds that an application has
    registered. The query server (`kstreams.server`) serves `queryable` stores.
    """

    name: str
    kind: StoreKind
    key: Serde | None = None
    value: Serde | None = None
    store: str = "rocksdb"
    retention_ms: int | None = None
    window_size_ms: int | None = None
    retain_duplicates: bool = False
    time_ordered: bool = False
    sparse: bool = False
    history_retention_ms: int | None = None
    right_value: Serde | None = None  # outer join: the serde of right rows; `value` is that of left rows
    max_entries: int | None = None  # LRU map: the greatest number of entries
    logging: bool = True
    caching: bool = False
    changelog_config: Mapping[str, str] = field(default_factory=dict)
    source_topic: str | None = None
    make: Callable[[Any], CustomStore] | None = None  # custom store: creates the store with its log
    options: Mapping[str, Any] = field(default_factory=dict)
    queryable: bool = False
    result: Callable[[Any], Any] | None = None  # converts a stored value for queries
    result_type: Any = None

    def as_queryable(self) -> StoreBuilder:
        """Return the builder of a store that the query server (`kstreams.server`) serves.

        Examples
        --------
        >>> from kstreams.state import Stores
        >>> Stores.key_value("totals", key=str, value=int).as_queryable().queryable
        True
        """
        return replace(self, queryable=True)

    def query_value(self, value: Any) -> Any:
        """Convert a value of the store for queries: for an aggregation by expressions, its result instead of its state.

        Examples
        --------
        >>> from dataclasses import replace
        >>> from kstreams.state import Stores
        >>> means = Stores.key_value("means", key=str, value=tuple[int, int])
        >>> replace(means, result=lambda state: state[0] / state[1]).query_value((6, 4))
        1.5
        """
        if self.result is None or value is None:
            return value
        return value._replace(value=self.result(value.value)) if self.kind.timestamped else self.result(value)

    def read_only(self, partitions: Sequence[Any], **routing: object) -> Any:
        """Return a view of partitions of the store, with the read methods of its kind (see `ReadOnlyStore`)."""
        query_value = None if self.result is None else self.query_value
        return self.kind.view(self.name, partitions, query_value=query_value, **routing)

    @property
    def caches(self) -> bool:
        """True if Kafka Streams has a cache in front of the store, which still finds expired rows.

        There is no cache if windows are emitted on close.
        """
        return self.caching and not self.time_ordered


def store_named(stores: Mapping[str, StoreBuilder], name: str) -> StoreBuilder:
    """Return the builder of a store; raise StateError if there is no store with this name."""
    builder = stores.get(name)
    if builder is None:
        names = ", ".join(sorted(stores)) or "none"
        raise StateError(f"there is no store {name!r}; the topology has: {names}")
    return builder
