"""`Stores`: describes state stores, for the Processor API and for stateful operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from kstreams.errors import StateError
from kstreams.kernel.advice import Advised, Advising
from kstreams.kernel.durations import Duration, to_ms
from kstreams.serdes import Serde, serde_of
from kstreams.state import store_kinds
from kstreams.state.store_builder import CustomStore, StoreBuilder, StoreKind, store_kind

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")

WriteLog: TypeAlias = Callable[..., None]
"""Takes a key and a value as bytes (None: deleted), and optionally a timestamp (ms)."""

Home: TypeAlias = Literal["rocksdb", "memory"]
"""The place of a store's rows."""


class Stores(Advised, metaclass=Advising):
    """Describes state stores: each method returns a `StoreBuilder`, which a task opens.

    All methods take these parameters, and those of their kind:

    Parameters
    ----------
    name : str
        The name, unique in the topology; part of the name of the changelog topic.
    key, value : type or Serde
        The types of keys and values.
    store : "rocksdb" or "memory"
        The place of the rows. A store in memory is restored from its changelog after every restart.
    logging : bool or mapping of str to str
        False for a store without a changelog topic, which cannot be restored. A mapping sets settings of the topic, by
        Kafka's names.
    caching : bool
        True if Kafka Streams has a cache in front of the store. Here the changelog gets the last write per key and
        commit in both cases. Only `all` of windows and sessions differs: a caching store returns expired rows until
        their segment expires. `statestore.cache.max.bytes` of 0 turns all caches off.

    Raises
    ------
    StateError
        If the parameters contradict each other.

    Notes
    -----
    Kafka Streams: `org.apache.kafka.streams.state.Stores`, supplier and builder in one.
    """

    _spellings: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("key_value_store_builder", "persistent_key_value_store"), "Stores.key_value(name, ...)"),
        "in_memory_key_value_store": 'Stores.key_value(name, store="memory", ...)',
        **dict.fromkeys(("window_store_builder", "persistent_window_store"), "Stores.window(name, ...)"),
        "in_memory_window_store": 'Stores.window(name, store="memory", ...)',
        **dict.fromkeys(("session_store_builder", "persistent_session_store"), "Stores.session(name, ...)"),
        "timestamped_key_value_store_builder": "Stores.timestamped_key_value(name, ...)",
        **dict.fromkeys(
            ("timestamped_key_value_store_with_headers_builder", "persistent_timestamped_key_value_store_with_headers"),
            "Stores.timestamped_key_value_with_headers(name, ...)",
        ),
        **dict.fromkeys(
            ("timestamped_window_store_with_headers_builder", "persistent_timestamped_window_store_with_headers"),
            "Stores.timestamped_window_with_headers(name, ...)",
        ),
        **dict.fromkeys(
            ("session_store_with_headers_builder", "persistent_session_store_with_headers"),
            "Stores.session_with_headers(name, ...)",
        ),
        "versioned_key_value_store_builder": "Stores.versioned(name, ...)",
    }

    @staticmethod
    def key_value(
        name: str,
        key: object = None,
        value: object = None,
        *,
        store: Home = "rocksdb",
        logging: bool | Mapping[str, str] = True,
        caching: bool = False,
    ) -> StoreBuilder:
        """Describe a key-value store.

        Examples
        --------
        >>> Stores.key_value("totals", key=str, value=int, store="memory").kind
        <StoreKind key-value>
        """
        return _builder(name, store_kinds.KEY_VALUE, key, value, store=store, logging=logging, caching=caching)

    @staticmethod
    def timestamped_key_value(
        name: str,
        key: object = None,
        value: object = None,
        *,
        store: Home = "rocksdb",
        logging: bool | Mapping[str, str] = True,
        caching: bool = False,
    ) -> StoreBuilder:
        """Describe a key-value store of `ValueAndTimestamp`s, as tables use it.

        Examples
        --------
        >>> Stores.timestamped_key_value("table", key=str, value=int).store
        'rocksdb'
        """
        return _builder(
            name, store_kinds.TIMESTAMPED_KEY_VALUE, key, value, store=store, logging=logging, caching=caching
        )

    @staticmethod
    def timestamped_key_value_with_headers(
        name: str,
        key: object = None,
        value: object = None,
        *,
        store: Home = "rocksdb",
        logging: bool | Mapping[str, str] = True,
        caching: bool = False,
    ) -> StoreBuilder:
        """Describe a key-value store of `ValueTimestampHeaders`: values with their headers.

        Examples
        --------
        >>> Stores.timestamped_key_value_with_headers("last-order", key=str, value=int).kind
        <StoreKind timestamped-key-value-with-headers>
        """
        kind = store_kinds.TIMESTAMPED_KEY_VALUE_WITH_HEADERS
        return _builder(name, kind, key, value, store=store, logging=logging, caching=caching)

    @staticmethod
    def lru_map(
        name: str,
        max_entries: int,
        key: object = None,
        value: object = None,
        *,
        logging: bool | Mapping[str, str] = True,
        caching: bool = False,
    ) -> StoreBuilder:
        """Describe a key-value store in memory for the `max_entries` keys that were used last.

        Examples
        --------
        >>> Stores.lru_map("recent", 100, key=str, value=int).max_entries
        100
        """
        if max_entries < 1:
            raise StateError(f"LRU map {name!r} has {max_entries} entries: max_entries must be at least 1")
        return _builder(
            name,
            store_kinds.KEY_VALUE,
            key,
            value,
            store="memory",
            logging=logging,
            caching=caching,
            max_entries=max_entries,
        )

    @staticmethod
    def window(
        name: str,
        retention: Duration,
        size: Duration,
        key: Any = None,
        value: Any = None,
        *,
        retain_duplicates: bool = False,
        store: Home = "rocksdb",
        logging: bool | Mapping[str, str] = True,
        caching: bool = False,
    ) -> StoreBuilder:
        """Describe a window store.

        Parameters
        ----------
        retention : timedelta or int (ms)
            The time from the start of a window to the greatest start, after which the window expires; at least `size`.
        size : timedelta or int (ms)
            The length of the windows.
        retain_duplicates : bool
            True if a key and start may have several values, as for joins.

        Examples
        --------
        >>> Stores.window("hourly", retention=7_200_000, size=3_600_000, key=str, value=int).window_size_ms
        3600000
        """
        times = _window_times(name, retention, size)
        return _builder(
            name,
            store_kinds.WINDOW,
            key,
            value,
            store=store,
            logging=logging,
            caching=caching,
            retain_duplicates=retain_duplicates,
            **times,
        )

    @staticmethod
    def timestamped_window(
        name: str,
        retention: Duration,
        size: Duration,
        key: object = None,
        value: object = None,
        *,
        store: Home = "rocksdb",
        logging: bool | Mapping[str, str] = True,
        caching: bool = False,
    ) -> StoreBuilder:
        """Describe a window store of `ValueAndTimestamp`s, as windowed tables use it.

        Examples
        --------
        >>> Stores.timestamped_window("hourly", 7_200_000, 3_600_000, key=str, value=int).retention_ms
        7200000
        """
        times = _window_times(name, retention, size)
        kind = store_kinds.TIMESTAMPED_WINDOW
        return _builder(name, kind, key, value, store=store, logging=logging, caching=caching, **times)

    @staticmethod
    def timestamped_window_with_headers(
        name: str,
        retention: Duration,
        size: Duration,
        key: object = None,
        value: object = None,
        *,
        store: Home = "rocksdb",
        logging: bool | Mapping[str, str] = True,
        caching: bool = False,
    ) -> StoreBuilder:
        """Describe a window store of `ValueTimestampHeaders`: values with their headers.

        Examples
        --------
        >>> Stores.timestamped_window_with_headers("hourly", 7_200_000, 3_600_000, key=str, value=int).kind
        <StoreKind timestamped-window-with-headers>
        """
        times = _window_times(name, retention, size)
        kind = store_kinds.TIMESTAMPED_WINDOW_WITH_HEADERS
        return _builder(name, kind, key, value, store=store, logging=logging, caching=caching, **times)

    @staticmethod
    def session(
        name: str,
        retention: Duration,
        key: object = None,
        value: object = None,
        *,
        store: Home = "rocksdb",
        logging: bool | Mapping[str, str] = True,
        caching: bool = False,
    ) -> StoreBuilder:
        """Describe a session store.

        Parameters
        ----------
        retention : timedelta or int (ms)
            The time from the end of a session to the greatest end, after which the session expires.

        Examples
        --------
        >>> Stores.session("visits", retention=3_600_000, key=str, value=int).kind
        <StoreKind session>
        """
        retention_ms = _positive(name, "retention", retention)
        kind = store_kinds.SESSION
        return _builder(
            name, kind, key, value, store=store, logging=logging, caching=caching, retention_ms=retention_ms
        )

    @staticmethod
    def session_with_headers(
        name: str,
        retention: Duration,
        key: object = None,
        value: object = None,
        *,
        store: Home = "rocksdb",
        logging: bool | Mapping[str, str] = True,
        caching: bool = False,
    ) -> StoreBuilder:
        """Describe a session store of `AggregationWithHeaders`: sessions with their headers.

        Parameters
        ----------
        retention : timedelta or int (ms)
            The time from the end of a session to the greatest end, after which the session expires.

        Examples
        --------
        >>> Stores.session_with_headers("visits", retention=3_600_000, key=str, value=int).kind
        <StoreKind session-with-headers>
        """
        retention_ms = _positive(name, "retention", retention)
        kind = store_kinds.SESSION_WITH_HEADERS
        return _builder(
            name, kind, key, value, store=store, logging=logging, caching=caching, retention_ms=retention_ms
        )

    @staticmethod
    def versioned(
        name: str,
        history_retention: Duration,
        key: object = None,
        value: object = None,
        *,
        store: Home = "rocksdb",
        logging: bool | Mapping[str, str] = True,
        caching: bool = False,
    ) -> StoreBuilder:
        """Describe a versioned key-value store.

        Parameters
        ----------
        history_retention : timedelta or int (ms)
            The age of the oldest version that can be read; puts with an older timestamp are refused.

        Examples
        --------
        >>> Stores.versioned("prices", history_retention=60_000, key=str, value=float).history_retention_ms
        60000
        """
        if caching:
            raise StateError(f"versioned store {name!r} keeps every version: leave caching=True out")
        history_ms = _positive(name, "history_retention", history_retention, least=0)
        kind = store_kinds.VERSIONED
        return _builder(name, kind, key, value, store=store, logging=logging, history_retention_ms=history_ms)

    @staticmethod
    def custom(
        name: str, make: Callable[[WriteLog], CustomStore], *, logging: bool | Mapping[str, str] = True
    ) -> StoreBuilder:
        """Describe a store in memory that you implement: it logs records, and is restored from them.

        Parameters
        ----------
        make : callable
            Takes the log, and returns the store: a class, or a function. The store has
            `restore(key, value, timestamp)`, and optionally `close()` (see `kstreams.state.CustomStore`). The log is a
            function that takes a key and a value as bytes (None: deleted), and optionally a timestamp in ms.

        Examples
        --------
        >>> class Highest:
        ...     def __init__(self, log):
        ...         self.log, self.value = log, 0
        ...
        ...     def offer(self, value):
        ...         if value > self.value:
        ...             self.value = value
        ...             self.log(b"highest", str(value).encode())
        ...
        ...     def restore(self, key, value, timestamp):
        ...         self.value = int(value)
        >>> Stores.custom("highest", Highest).kind
        <StoreKind custom>
        """
        return _builder(name, store_kinds.CUSTOM, None, None, store="memory", logging=logging, make=make)

    @staticmethod
    def of_kind(
        kind: StoreKind | str,
        name: str,
        key: object = None,
        value: object = None,
        *,
        retention: Duration | None = None,
        store: Home = "rocksdb",
        logging: bool | Mapping[str, str] = True,
        caching: bool = False,
        **options: object,
    ) -> StoreBuilder:
        """Describe a store of any kind, such as one that an application has registered.

        Parameters
        ----------
        kind : StoreKind or str
            See `kstreams.state.register_store_kind`.
        retention : timedelta or int (ms), optional
            The time after which rows expire, for kinds whose rows expire.
        **options
            Options of the kind, as `StoreBuilder.options`.

        Examples
        --------
        >>> Stores.of_kind("key-value", "totals", key=str, value=int).kind
        <StoreKind key-value>
        """
        retention_ms = None if retention is None else _positive(name, "retention", retention)
        store_kind_ = store_kind(kind) if isinstance(kind, str) else kind
        return _builder(
            name,
            store_kind_,
            key,
            value,
            store=store,
            logging=logging,
            caching=caching,
            retention_ms=retention_ms,
            options=options,
        )


def _builder(
    name: str,
    kind: StoreKind,
    key: Any,
    value: Any,
    *,
    store: str = "rocksdb",
    logging: bool | Mapping[str, str] = True,
    caching: bool = False,
    **of_kind: Any,
) -> StoreBuilder:
    if not name:
        raise StateError("a store needs a name: it names its changelog topic")
    if not _NAME.fullmatch(name):
        raise StateError(
            f"{name!r} cannot name a store and its changelog: use 1 to 249 letters, digits, '.', '_' and '-'"
        )
    if store not in get_args(Home):
        raise StateError(f'store {name!r} cannot be in {store!r}: choose store="rocksdb" or store="memory"')
    config = dict(logging) if isinstance(logging, Mapping) else {}
    return StoreBuilder(
        name, kind, _serde(key), _serde(value), store,
        logging=logging is not False, caching=caching, changelog_config=config, **of_kind,
    )  # fmt: skip


def _serde(kind: object) -> Serde[object] | None:
    return None if kind is None else serde_of(kind)


def _positive(name: str, option: str, duration: Duration, least: int = 1) -> int:
    duration_ms = to_ms(duration)
    if duration_ms < least:
        raise StateError(f"store {name!r}: {option} is {duration_ms} ms, it must be at least {least} ms")
    return duration_ms


def _window_times(name: str, retention: Duration, size: Duration) -> dict[str, object]:
    retention_ms = _positive(name, "retention", retention)
    size_ms = _positive(name, "size", size, least=0)
    if retention_ms < size_ms:
        raise StateError(
            f"window store {name!r}: its retention ({retention_ms} ms) is shorter than its windows ({size_ms} ms), "
            "which would expire before they end; make the retention at least as long"
        )
    return {"retention_ms": retention_ms, "window_size_ms": size_ms}
