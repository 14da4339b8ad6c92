"""`BranchedKStream`: a stream while it is split into branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeVar, overload

from kstreams.dsl.graph import Function, Split, node_function
from kstreams.dsl.naming import validate_name
from kstreams.dsl.suggestions import SuggestsNames
from kstreams.errors import TopologyError
from kstreams.kernel.advice import nearest_name
from kstreams.kernel.source_line import declared_at
from kstreams.record import RecordWithMetadata

if TYPE_CHECKING:
    from kstreams.dsl.streams.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

Chain = Callable[[Any], Any]
"""A function of the stream of a branch; its result is the branch in the dict, unless it is None."""


class Branches(dict[str, T]):
    """The branches of a split by name; the error for an unknown name lists the branches.

    Examples
    --------
    >>> Branches({"by-large": 1})["large"]
    Traceback (most recent call last):
    KeyError: "the split has no branch 'large': did you mean 'by-large'? It has: 'by-large'"
    """

    def __missing__(self, name: object) -> T:
        prefixed = (branch for branch in self if branch.endswith(str(name)))
        nearest = next(prefixed, None) or nearest_name(str(name), self, cutoff=0.5)
        hint = f"did you mean {nearest!r}? It has" if nearest else "it has"
        raise KeyError(f"the split has no branch {name!r}: {hint}: {', '.join(map(repr, self)) or 'none'}")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            branch = next(iter(self), "name")
            raise AttributeError(
                f"the branches of a split have no {name}: take one of them, as [{branch!r}]", name=name
            )


class BranchedKStream(SuggestsNames, Generic[K, V]):
    """Collects branches; `default_branch()` or `no_default_branch()` returns them. Kafka Streams: `BranchedKStream`.

    Examples
    --------
    >>> from kstreams.dsl.builder import StreamsBuilder
    >>> words = StreamsBuilder().stream("words", key=str, value=str)
    >>> branches = words.split(name="by-").branch(lambda k, v: len(v) > 3, name="long").default_branch(name="short")
    >>> sorted(branches)
    ['by-long', 'by-short']
    """

    def __init__(
        self, stream: KStream[K, V], prefix: str, branches: tuple[tuple[Function, str, Chain | None], ...] = ()
    ) -> None:
        self._stream = stream
        self._prefix = prefix
        self._branches = branches

    def __getitem__(self, name: object) -> NoReturn:
        raise TypeError(
            f"the split has no branches yet: end it with default_branch() or no_default_branch(), as in "
            f"branches = stream.split().branch(...).default_branch(), and then take branches[{name!r}]"
        )

    @overload
    def branch(
        self,
        predicate: Callable[[K, V], Any] | Function,
        *,
        with_record: Literal[False] = False,
        name: str | None = None,
        function: Callable[[KStream[K, V]], KStream[K, V] | None] | None = None,
        consumer: Callable[[KStream[K, V]], Any] | None = None,
    ) -> BranchedKStream[K, V]: ...
    @overload
    def branch(
        self,
        predicate: Callable[[RecordWithMetadata[K, V]], Any],
        *,
        with_record: Literal[True],
        name: str | None = None,
        function: Callable[[KStream[K, V]], KStream[K, V] | None] | None = None,
        consumer: Callable[[KStream[K, V]], Any] | None = None,
    ) -> BranchedKStream[K, V]: ...
    def branch(
        self,
        predicate: Callable[..., Any] | Function,
        *,
        with_record: bool = False,
        name: str | None = None,
        function: Callable[[KStream[K, V]], KStream[K, V] | None] | None = None,
        consumer: Callable[[KStream[K, V]], Any] | None = None,
    ) -> BranchedKStream[K, V]:
        """Add a branch of the records for which `predicate(key, value)` is the first true predicate.

        Kafka Streams: `branch(predicate, Branched)`.

        Parameters
        ----------
        with_record : bool
            True if the predicate takes the whole record: a `RecordWithMetadata`.
        name : str, optional
            Name of the branch after the prefix; by default its position (1, 2, ...).
        function : callable, optional
            Takes the stream of the branch; its result is the branch in the dict, unless it is None.
            Kafka Streams: `Branched.withFunction`.
        consumer : callable, optional
            Takes the stream of the branch, which the dict then omits. Kafka Streams: `Branched.withConsumer`.

        Raises
        ------
        TopologyError
            If there are both a function and a consumer.
        """
        branch = (
            node_function(predicate, with_record=with_record),
            self._next_name(name or str(len(self._branches) + 1)),
            _chain(function, consumer),
        )
        return BranchedKStream(self._stream, self._prefix, (*self._branches, branch))

    def default_branch(
        self,
        *,
        name: str | None = None,
        function: Callable[[KStream[K, V]], KStream[K, V] | None] | None = None,
        consumer: Callable[[KStream[K, V]], Any] | None = None,
    ) -> dict[str, KStream[K, V]]:
        """Add a branch of the records for which no predicate is true, and return all branches by name.

        Parameters as for `branch`.
        """
        return self._build((self._next_name(name or "0"), _chain(function, consumer)))

    def no_default_branch(self) -> dict[str, KStream[K, V]]:
        """Return all branches by name; drop the records for which no predicate is true."""
        return self._build()

    def _next_name(self, suffix: str) -> str:
        self._stream._graph.names.next("KSTREAM-BRANCH-")  # Kafka Streams counts branches, also named ones
        return validate_name(self._prefix + suffix)

    def _build(self, *default: tuple[str, Chain | None]) -> dict[str, KStream[K, V]]:
        named = [(name, chain) for _, name, chain in self._branches] + list(default)
        predicates = tuple(predicate for predicate, _, _ in self._branches)
        streams = self._stream._branch(
            Split(predicates=predicates, branches=tuple(name for name, _ in named)), self._prefix
        )
        results = {
            name: stream if chain is None else chain(stream)
            for (name, chain), stream in zip(named, streams, strict=True)
        }
        return Branches({name: stream for name, stream in results.items() if stream is not None})


def _chain(function: Chain | None, consumer: Chain | None) -> Chain | None:
    if consumer is None:
        return function
    if function is not None:
        raise TopologyError(f"the branch at {declared_at()} has a function= and a consumer=: give one of them")

    def consume(stream: object) -> None:
        consumer(stream)

    return consume
