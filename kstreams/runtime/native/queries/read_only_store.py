"""`ReadOnlyStore`: one store of the topology, all its local partitions as one, for questions from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from kstreams.state.read_only import COUNTS, LOOKUPS, SCANS


class Owner(Protocol):
    """Who lets others look into a store while it stands still."""

    def ask(self, question: Callable[[], Any]) -> Any:
        """Call `question` then, and give its answer."""
        ...


class ReadOnlyStore:
    """Asks all partitions of a store; has the reading methods of the store's kind (see `kstreams.state.api`).

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

    def __getattr__(self, method: str) -> Callable[..., Any]:
        for kinds, ask in ((LOOKUPS, self._look_up), (SCANS, self._scan), (COUNTS, self._count)):
            if method in kinds and hasattr(self._owners[0][1], method):
                return lambda *args, **options: ask(method, args, options)
        raise AttributeError(f"the store {self.name} cannot be asked for {method!r}: it is read-only from here")

    def _look_up(self, method: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        return next((found for found in self._ask(method, args, options, _same) if found is not None), None)

    def _scan(self, method: str, args: tuple[Any, ...], options: dict[str, Any]) -> list[Any]:
        return [entry for found in self._ask(method, args, options, list) for entry in found]

    def _count(self, method: str, args: tuple[Any, ...], options: dict[str, Any]) -> int:
        return sum(self._ask(method, args, options, _same))

    def _ask(
        self, method: str, args: tuple[Any, ...], options: dict[str, Any], whole: Callable[[Any], Any]
    ) -> Iterator[Any]:
        """The answers, one partition after the other; `whole` reads an iterator while its store stands still."""
        for owner, store in self._owners:
            read = getattr(store, method)
            yield owner.ask(partial(_call, whole, read, args, options))


def _call(whole: Callable[[Any], Any], read: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return whole(read(*args, **options))


def _same(answer: Any) -> Any:
    return answer
