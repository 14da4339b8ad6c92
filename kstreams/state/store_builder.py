"""`StoreKind`, the descriptor of a kind of stores; `RowReader`, how its rows are read; `StoreBuilder`, one store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Annotated, Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from kstreams.errors import StateError
from kstreams.serdes import Serde


class CustomStore(Protocol):
    """A store of the user's own making: any object that can take back what it logged.

    It gets its log when it is made: a function that takes a key, a value (None: deleted) and, if it likes, a timestamp
    in ms. What it logs goes to its changelog, the last record per key and commit. A `close` is called, if it has one.
    """

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Take back a record that was logged; called before anything else, in the order of the changelog."""
        ...


Written: TypeAlias = Callable[..., tuple[Any, Any]]
"""Of the arguments of a writing method: the key and the value that serdes turn into bytes."""
Entry: TypeAlias = tuple[Any, Any]
"""A key and a value as a store returns them."""
Row: TypeAlias = dict[str, Any]
"""An entry by column, in a form that JSON can hold."""

FIRST_MS = 0
LAST_MS = 2**62
_Ms = Annotated[int, msgspec.Meta(ge=FIRST_MS, le=LAST_MS)]


class RowPlace(msgspec.Struct, frozen=True, array_like=True):
    """The position of a row in the order of its store. The row may no longer exist.

    Parameters
    ----------
    key : bytes
        The serialized key: not every key can be read back from JSON as the same key.
    first_ms, second_ms : int
        The start and the end of a window, or the time from which a version holds.
    """

    key: bytes
    first_ms: _Ms = 0
    second_ms: _Ms = 0


@runtime_checkable  # the DSL checks the fields of a `StoreKind`
class RowReader(Protocol):
    """How the rows of a store kind are read, by typed queries, the query server and the command line alike."""

    @property
    def bounds(self) -> frozenset[str]:
        """The bounds that a query may set, as fields of `RowQuery`. It may always set `key` and `descending`."""
        ...

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that no two rows have in common."""
        ...

    @property
    def is_lookup(self) -> bool:
        """Whether a key has at most one row, which `get` returns in some microseconds."""
        ...

    def of_key(self, store: Any, query: RowQuery) -> Iterable[Entry]:
        """Return the entries of `query.key` after `query.after`."""
        ...

    def of_keys(self, store: Any, query: RowQuery) -> Iterable[Entry]:
        """Return the entries of all keys within the bounds, after `query.after`."""
        ...

    def place(self, builder: StoreBuilder, key: Any, value: Any) -> RowPlace:
        """Return the place of an entry."""
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
        The first and the last key. None for open.
    prefix : Any
        Only keys whose bytes begin with those of the prefix. None for all keys.
    from_ms, to_ms : int or None
        The first and the last time. None for open.
    as_of_ms : int or None
        Only what held at this time.
    descending : bool
    after : RowPlace or None
        The place of the row before the first one. None to begin with the first row.
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
        """The kinds that can answer, as in `kstreams.state.queries.StateQuery`."""
        return kinds_read_by(self.reader)

    @property
    def times(self) -> tuple[int, int]:
        """The first and the last time."""
        return FIRST_MS if self.from_ms is None else self.from_ms, LAST_MS if self.to_ms is None else self.to_ms

    @property
    def is_without_span(self) -> bool:
        """Whether the query sets neither `from_ms` nor `to_ms`."""
        return self.from_ms is None and self.to_ms is None

    def ask(self, store: object) -> list[Entry]:
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
    """One kind of stores: all that distinguishes it from the others.

    Parameters
    ----------
    name : str
        As metadata and pictures call it: a word, as `session`.
    open : callable
        `(builder, family, budget, *extra_families) -> LiveStore`: makes the store; mostly its class. The store decides
        how its keys and values become bytes (`kstreams.state.codecs`).
    view : type
        The class of `kstreams.state.read_only_store` that has the reading methods: what a query sees.
    writes : mapping of str to callable or None
        The writing methods. Each with a function of its arguments that gives the key and the value to be serialized,
        so that a handler of errors learns at once of one that its serde cannot write; None where there is no such pair.
    times : mapping of str to mapping of int to callable
        By method: which of its arguments hold times, by place, and what takes them from a user (`timed_store.py`).
    timestamped : bool
        Whether values have a timestamp (`ValueAndTimestamp`, `ValueTimestampHeaders`): the changelog has it as that of
        its record.
    headers : bool
        Whether values have headers (`ValueTimestampHeaders`, `AggregationWithHeaders`): the changelog has them as those
        of its records.
    changelog_key : callable
        `(builder) -> Serde or None`: the serde of the keys in its changelog, by which tools show them.
    changelog_config : callable
        `(builder) -> mapping`: cleanup policy and retention of its changelog.
    current_form : callable
        Of its changelog records (`Changes`): the same, those that are written in an older form in today's.
    extra_families : tuple of str
        Column families that it has beside the one with its rows.
    time_in_key : int or None
        Where the time of a row (8 bytes, big endian) begins in the keys of its changelog, counted from their end; None
        where rows do not expire.
    reads_committed : bool
        Whether a second store over its bytes, which is only read, answers all that its view asks: then queries may read
        it as of the last commit, in threads of their own.
    rows : RowReader or None
        How typed queries, the query server and the command line read rows: mostly a reader of
        `kstreams.state.row_readers`. None if they cannot.
    table : callable or None
        What makes its rows an Arrow table (`kstreams.state.tables.store_tables`); None where they have no such form.
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
    """Make a kind of stores known by its name; `Stores.of_kind` then describes stores of it.

    Parameters
    ----------
    kind : StoreKind

    Returns
    -------
    StoreKind
        The same.

    Raises
    ------
    StateError
        When another kind has this name.

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
    """The kind of a name.

    Raises
    ------
    StateError
        When no kind has this name.
    """
    if name not in _BY_NAME:
        raise StateError(f"there is no kind of stores {name!r}; there are {', '.join(sorted(_BY_NAME))}")
    return _BY_NAME[name]


def kinds_read_by(reader: RowReader, *, timestamped: bool = False) -> Collection[str]:
    """Return the names of the kinds whose rows a reader reads; `timestamped`: of those whose values have timestamps."""
    return [kind.name for kind in _BY_NAME.values() if kind.rows is reader and (kind.timestamped or not timestamped)]


@dataclass(frozen=True, slots=True)
class StoreBuilder:
    """The description of a store; `Stores` makes it, a task opens it.

    Times are milliseconds. `store` is "rocksdb" or "memory". `changelog_config` overrides settings of the changelog.
    A store with a `source_topic` has that topic of the user's for its changelog, and none of its own. One that is
    `time_ordered` serves emission on close: it hides what has expired from `all` at once, but still finds what closes.
    The windows of a `sparse` one hardly share a start, so that its rows are grouped by key. `options` belong to kinds
    that an application has registered. Of a `queryable` one the server of queries (`kstreams.server`) gives answers.
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
    right_value: Serde | None = None  # outer join: serde of right rows; `value` is that of left rows
    max_entries: int | None = None  # an LRU map: how many entries it keeps
    logging: bool = True
    caching: bool = False
    changelog_config: Mapping[str, str] = field(default_factory=dict)
    source_topic: str | None = None
    make: Callable[[Any], CustomStore] | None = None  # custom: of its log, the store
    options: Mapping[str, Any] = field(default_factory=dict)
    queryable: bool = False
    result: Callable[[Any], Any] | None = None  # of a value that is kept, what queries are told
    result_type: Any = None

    def as_queryable(self) -> StoreBuilder:
        """The same, and the server of queries (`kstreams.server`) answers questions of it.

        Examples
        --------
        >>> from kstreams.state import Stores
        >>> Stores.key_value("totals", key=str, value=int).as_queryable().queryable
        True
        """
        return replace(self, queryable=True)

    def told(self, value: Any) -> Any:
        """What queries are told of a value that the store gave: of an aggregation by expressions not its parts.

        Examples
        --------
        >>> from dataclasses import replace
        >>> from kstreams.state import Stores
        >>> means = Stores.key_value("means", key=str, value=tuple[int, int])
        >>> replace(means, result=lambda kept: kept[0] / kept[1]).told((6, 4))
        1.5
        """
        if self.result is None or value is None:
            return value
        return value._replace(value=self.result(value.value)) if self.kind.timestamped else self.result(value)

    def read_only(self, partitions: Sequence[Any], **routing: object) -> Any:
        """Partitions of the store, to be read by the methods of its kind (see `ReadOnlyStore`)."""
        return self.kind.view(self.name, partitions, told=None if self.result is None else self.told, **routing)

    @property
    def caches(self) -> bool:
        """Whether Kafka Streams has a cache before it, which still finds what has expired: none where closing emits."""
        return self.caching and not self.time_ordered


def store_named(stores: Mapping[str, StoreBuilder], name: str) -> StoreBuilder:
    """The store of a name; raises StateError without one."""
    builder = stores.get(name)
    if builder is None:
        names = ", ".join(sorted(stores)) or "none"
        raise StateError(f"there is no store {name!r}; the topology has: {names}")
    return builder
