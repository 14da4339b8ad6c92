"""Stores for queries from outside: all local partitions of a store as one, with the reading methods of its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from kstreams.record import Windowed
from kstreams.serdes import Serde
from kstreams.state.api import VersionedRecord


class Owner(Protocol):
    """Who lets others look into a store while it stands still."""

    def ask(self, question: Callable[[], Any]) -> Any:
        """Call `question` then, and give its answer."""
        ...


class ReadOnlyStore:
    """All local partitions of a store, to be read. A class per kind of stores adds the methods.

    A lookup gives the first answer that is not None. A scan gives the entries partition by partition, each in the order
    of its serialized keys: there is no order over all. Kafka Streams: `KafkaStreams.store`.

    Parameters
    ----------
    name : str
    owners : sequence of (Owner, store)
        The store of each partition, and who owns it.
    """

    def __init__(self, name: str, owners: Sequence[tuple[Owner, Any]]) -> None:
        self.name, self._owners = name, owners

    if not TYPE_CHECKING:  # a type checker would take every name to be there

        def __getattr__(self, method: str) -> Any:
            raise AttributeError(f"the store {self.name} cannot be asked for {method!r}: it is read-only from here")

    def _look_up(self, method: str, *args: Any) -> Any:
        """The first answer of a partition that is not None."""
        return next((found for found in self._ask(method, args, _same) if found is not None), None)

    def _scan(self, method: str, *args: Any) -> list[Any]:
        """The entries of all partitions, one after the other."""
        return [entry for found in self._ask(method, args, list) for entry in found]

    def _count(self, method: str) -> int:
        """The sum of the answers of all partitions."""
        return sum(self._ask(method, (), _same))

    def _ask(self, method: str, args: tuple[Any, ...], whole: Callable[[Any], Any]) -> Iterator[Any]:
        """The answers, one partition after the other; `whole` reads an iterator while its store stands still."""
        for owner, store in self._owners:
            read = getattr(store, method, None)
            if read is None:
                raise AttributeError(f"the store {self.name} cannot be asked for {method!r}: it has no such method")
            yield owner.ask(partial(_call, whole, read, args))


def _call(whole: Callable[[Any], Any], read: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return whole(read(*args))


def _same(answer: Any) -> Any:
    return answer


class ReadOnlyKeyValueStore(ReadOnlyStore):
    """A key-value store, plain or timestamped. Kafka Streams: `ReadOnlyKeyValueStore`."""

    def get(self, key: Any) -> Any:
        """The value of a key, or None."""
        return self._look_up("get", key)

    def range(self, low: Any = None, high: Any = None) -> list[tuple[Any, Any]]:
        """(key, value) from `low` to `high`, both included and None for open."""
        return self._scan("range", low, high)

    def reverse_range(self, low: Any = None, high: Any = None) -> list[tuple[Any, Any]]:
        """`range` in descending order."""
        return self._scan("reverse_range", low, high)

    def all(self) -> list[tuple[Any, Any]]:
        """Every (key, value)."""
        return self._scan("all")

    def reverse_all(self) -> list[tuple[Any, Any]]:
        """`all` in descending order."""
        return self._scan("reverse_all")

    def prefix_scan(self, prefix: Any, serde: Serde[Any] | None = None) -> list[tuple[Any, Any]]:
        """(key, value) of the keys whose bytes begin with those of `prefix`, which `serde` writes."""
        return self._scan("prefix_scan", prefix, serde)

    def approximate_num_entries(self) -> int:
        """Roughly how many entries there are."""
        return self._count("approximate_num_entries")


class ReadOnlyWindowStore(ReadOnlyStore):
    """A window store, plain or timestamped; times are milliseconds. Kafka Streams: `ReadOnlyWindowStore`."""

    def get(self, key: Any, start_ms: int) -> Any:
        """The value of the window of a key that starts at a time, or None. Kafka Streams: `fetch(key, time)`."""
        return self._look_up("get", key, start_ms)

    def fetch(self, key: Any, from_ms: int, to_ms: int) -> list[tuple[int, Any]]:
        """(start, value) of a key with from <= start <= to, ascending."""
        return self._scan("fetch", key, from_ms, to_ms)

    def backward_fetch(self, key: Any, from_ms: int, to_ms: int) -> list[tuple[int, Any]]:
        """`fetch` in descending order."""
        return self._scan("backward_fetch", key, from_ms, to_ms)

    def fetch_all(self, from_ms: int, to_ms: int) -> list[tuple[Windowed[Any], Any]]:
        """(windowed key, value) of all keys with from <= start <= to."""
        return self._scan("fetch_all", from_ms, to_ms)

    def backward_fetch_all(self, from_ms: int, to_ms: int) -> list[tuple[Windowed[Any], Any]]:
        """`fetch_all` in descending order."""
        return self._scan("backward_fetch_all", from_ms, to_ms)

    def fetch_range(self, low: Any, high: Any, from_ms: int, to_ms: int) -> list[tuple[Windowed[Any], Any]]:
        """As `fetch_all`, of the keys from `low` to `high`, both included and None for open."""
        return self._scan("fetch_range", low, high, from_ms, to_ms)

    def backward_fetch_range(self, low: Any, high: Any, from_ms: int, to_ms: int) -> list[tuple[Windowed[Any], Any]]:
        """`fetch_range` in descending order."""
        return self._scan("backward_fetch_range", low, high, from_ms, to_ms)

    def all(self) -> list[tuple[Windowed[Any], Any]]:
        """Every (windowed key, value)."""
        return self._scan("all")

    def backward_all(self) -> list[tuple[Windowed[Any], Any]]:
        """`all` in descending order."""
        return self._scan("backward_all")


class ReadOnlySessionStore(ReadOnlyStore):
    """A session store; times are milliseconds. Kafka Streams: `ReadOnlySessionStore`."""

    def fetch_session(self, key: Any, start_ms: int, end_ms: int) -> Any:
        """The value of exactly this session, or None."""
        return self._look_up("fetch_session", key, start_ms, end_ms)

    def fetch(self, key: Any) -> list[tuple[Windowed[Any], Any]]:
        """(windowed key, value) of all sessions of a key."""
        return self._scan("fetch", key)

    def backward_fetch(self, key: Any) -> list[tuple[Windowed[Any], Any]]:
        """`fetch` in descending order."""
        return self._scan("backward_fetch", key)

    def fetch_range(self, low: Any, high: Any) -> list[tuple[Windowed[Any], Any]]:
        """All sessions of the keys from `low` to `high`, both included and None for open."""
        return self._scan("fetch_range", low, high)

    def backward_fetch_range(self, low: Any, high: Any) -> list[tuple[Windowed[Any], Any]]:
        """`fetch_range` in descending order."""
        return self._scan("backward_fetch_range", low, high)

    def find_sessions(self, key: Any, earliest_end_ms: int, latest_start_ms: int) -> list[tuple[Windowed[Any], Any]]:
        """Sessions of a key with end >= earliest_end_ms and start <= latest_start_ms."""
        return self._scan("find_sessions", key, earliest_end_ms, latest_start_ms)

    def backward_find_sessions(
        self, key: Any, earliest_end_ms: int, latest_start_ms: int
    ) -> list[tuple[Windowed[Any], Any]]:
        """`find_sessions` in descending order."""
        return self._scan("backward_find_sessions", key, earliest_end_ms, latest_start_ms)

    def find_sessions_range(
        self, low: Any, high: Any, earliest_end_ms: int, latest_start_ms: int
    ) -> list[tuple[Windowed[Any], Any]]:
        """As `find_sessions`, of the keys from `low` to `high`, both included and None for open."""
        return self._scan("find_sessions_range", low, high, earliest_end_ms, latest_start_ms)

    def backward_find_sessions_range(
        self, low: Any, high: Any, earliest_end_ms: int, latest_start_ms: int
    ) -> list[tuple[Windowed[Any], Any]]:
        """`find_sessions_range` in descending order."""
        return self._scan("backward_find_sessions_range", low, high, earliest_end_ms, latest_start_ms)

    def all(self) -> list[tuple[Windowed[Any], Any]]:
        """Every (windowed key, value)."""
        return self._scan("all")

    def backward_all(self) -> list[tuple[Windowed[Any], Any]]:
        """`all` in descending order."""
        return self._scan("backward_all")


class ReadOnlyVersionedStore(ReadOnlyStore):
    """A versioned key-value store. Kafka Streams: `VersionedKeyValueStore`, its reading methods."""

    def get(self, key: Any, as_of_ms: int | None = None) -> VersionedRecord | None:
        """The latest version of a key, or the one that held at a time; None when there is none."""
        found: VersionedRecord | None = self._look_up("get", key, as_of_ms)
        return found


class ReadOnlyBuffer(ReadOnlyStore):
    """A buffer of a suppression or a join."""

    def num_records(self) -> int:
        """How many records it holds."""
        return self._count("num_records")

    def num_bytes(self) -> int:
        """How many bytes the records of a suppression's buffer take, serialized."""
        return self._count("num_bytes")
