"""`StreamSugar`: operators of a stream that Kafka Streams leaves to its users."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kstreams.dsl.graph import Deduplicate, Filter, Typing
from kstreams.dsl.graph.signatures import check_call
from kstreams.dsl.handle import Handle
from kstreams.dsl.return_annotations import return_type
from kstreams.dsl.sugar.deduplication import Deduplication
from kstreams.dsl.sugar.known_types import known, types_of
from kstreams.errors import TopologyError
from kstreams.kernel.durations import Duration, to_ms
from kstreams.kernel.source_line import declared_at
from kstreams.serdes import Serde, serde_of

if TYPE_CHECKING:
    from kstreams.dsl.streams.kstream import KStream
from kstreams.kernel.murmur2 import murmur2


def in_sample(
    fraction: float, seed: int, part: Callable[[Any, Any], Any] | None, serde: Serde[Any]
) -> Callable[[Any, Any], bool]:
    """Whether a record is in the sample: its key is, or what `part(key, value)` takes of it.

    Examples
    --------
    >>> from kstreams.serdes import serde_of
    >>> keep = in_sample(0.25, 0, None, serde_of(str))
    >>> sum(keep(str(number), None) for number in range(1_000))
    246
    """
    below = int(fraction * 2**32)
    salt = seed.to_bytes(8, "big", signed=True)
    serialize = serde.serialize

    def keep(key: Any, value: Any) -> bool:
        sampled = key if part is None else part(key, value)
        return murmur2(salt + (b"" if sampled is None else serialize(sampled))) < below

    return keep


K = TypeVar("K")
V = TypeVar("V")


class StreamSugar(Handle, Generic[K, V]):
    """The operators of `KStream` that are made of others."""

    __slots__ = ()

    def deduplicate(
        self,
        within: Duration,
        *,
        by: Callable[[K, V], Any] | None = None,
        key: Typing = None,
        name: str | None = None,
    ) -> KStream[K, V]:
        """The first of the records that have the same key, or the same part of them, within a time.

        In Kafka Streams one writes a processor with a window store. Event times are compared, whatever the order in
        which records come. A record that comes later than `within` after stream time may be passed on again.

        Parameters
        ----------
        within : timedelta or int (ms)
            Records further apart are no duplicates.
        by : callable, optional
            `(key, value)` -> what must not come twice, such as an event's id; None passes a record on. Duplicates are
            found within a partition: where their keys differ, `select_key` the part and `repartition` first.
        key : type or Serde, optional
            Of what `by` gives, or of the key, where it is not known.
        name : str, optional
            Names the operator, and its store "<name>-store".

        Raises
        ------
        TopologyError
            When the type is not known, or `within` is negative.

        Examples
        --------
        >>> from datetime import timedelta
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> payments = StreamsBuilder().stream("payments", key=str, value=dict[str, str])
        >>> once = payments.deduplicate(timedelta(hours=1), by=lambda key, payment: payment["id"], key=str)
        """
        within_ms = to_ms(within)
        if within_ms < 0:
            raise TopologyError(f"deduplicate() at {declared_at()} was given a negative time: {within_ms} ms")
        serde = self._serde_of_part(by, key, "deduplicate()")
        name = self._graph.names.given_or_next(name, "KSTREAM-DEDUPLICATE-")
        supplier = Deduplication(f"{name}-store", within_ms, by or _the_key, serde)
        value = types_of(self._graph, self._node).value.kind
        node = Deduplicate(supplier=supplier, value=value)
        return self._graph.stream(self._graph.add(node, name, (self._node.name,)))

    def sample(
        self,
        fraction: float,
        *,
        by: Callable[[K, V], Any] | None = None,
        seed: int = 0,
        key: Typing = None,
        name: str | None = None,
    ) -> KStream[K, V]:
        """The records of a share of all keys: always the same keys, on every engine and in every run.

        In Kafka Streams one writes a filter.

        Parameters
        ----------
        fraction : float
            From 0 to 1: the share of keys, not of records.
        by : callable, optional
            `(key, value)` -> what decides instead of the key, such as an order's id.
        seed : int
            Another one takes another sample.
        key : type or Serde, optional
            Of what `by` gives, or of the key, where it is not known.

        Raises
        ------
        TopologyError
            When the fraction is none, or the type is not known.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> clicks = StreamsBuilder().stream("clicks", key=str, value=str)
        >>> clicks.sample(0.01).to("one-user-in-a-hundred")
        """
        if not 0 <= fraction <= 1:
            raise TopologyError(f"sample() at {declared_at()} takes a fraction from 0 to 1, not {fraction}")
        keep = in_sample(fraction, seed, by, self._serde_of_part(by, key, "sample()"))
        return self._graph.stream(self._then(Filter(predicate=keep), "KSTREAM-FILTER-", name))

    def _serde_of_part(self, by: Callable[[K, V], Any] | None, declared: Typing, asker: str) -> Serde[Any]:
        if by is not None:
            check_call(f"{asker} at {declared_at()}", "by", by, "key", "value")
        if by is None:
            key = types_of(self._graph, self._node).key
            return serde_of(known(key.or_declared(declared, self._node), "key", asker))
        part = return_type(by) if declared is None else declared
        if part is None:
            raise TopologyError(
                f"{asker} at {declared_at()} must know the type of what by= gives: write key=<type>, "
                "or annotate what the function returns"
            )
        return serde_of(part)


def _the_key(key: Any, value: Any) -> Any:
    return key
