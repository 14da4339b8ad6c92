"""Declares the joins of two tables: their nodes, and the names of processors, topics and stores."""

from __future__ import annotations

from dataclasses import dataclass

from kstreams.dsl.graph import Function, Node, Typing
from kstreams.dsl.graph.table_joins import ForeignKeyJoin, ForeignKeyNames, InternalTopicNames, Partitioner, TableJoin
from kstreams.dsl.handle import Handle
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.naming import Names, validate_name
from kstreams.dsl.streams.joining import check_selected, check_sides
from kstreams.errors import TopologyError
from kstreams.kernel.source_line import declared_at


@dataclass(frozen=True, slots=True)
class TableJoinOptions:
    """The arguments of a join: the joiner, the types and store of the result, and which sides are outer."""

    joiner: Function
    key: Typing
    value: Typing
    materialized: str | Materialized | None
    name: str | None
    left_outer: bool
    right_outer: bool = False

    @property
    def operator(self) -> str:
        """The method that the user called."""
        return "outer_join" if self.right_outer else "left_join" if self.left_outer else "join"

    @property
    def has_store(self) -> bool:
        """True if the user named a store or a type, for which Kafka Streams materializes the result."""
        return (self.materialized, self.key, self.value) != (None, None, None)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """The foreign key of the left rows; without a function, the tables are joined by their own keys."""

    function: Function | None = None
    with_key: bool = False
    partitioner: Partitioner | None = None
    other_partitioner: Partitioner | None = None


def join_tables(left: Handle, right: Handle, options: TableJoinOptions, by: ForeignKey) -> Node:
    """Declare a join of two tables."""
    left._meets(right, options.operator, type(left))
    if by.function is not None:
        return _by_foreign_key(left, right, options, by, by.function)
    if by != ForeignKey():
        raise TopologyError(
            f"{options.operator}() at {declared_at()}: with_key=, partitioner= and other_partitioner= belong to a join "
            "by foreign key: give it foreign_key="
        )
    return _by_key(left, right, options)


def _by_key(left: Handle, right: Handle, options: TableJoinOptions) -> TableJoin:
    check_sides(f"{options.operator}()", left, right, None)
    graph = left._graph
    materialization = Materialized.of(options.materialized, history=True)
    if materialization.name is None and options.has_store:
        materialization = materialization.named(graph.names.next("KTABLE-MERGE-STATE-STORE-"))
    names = _JoinNames(graph.names, options.name)
    merge = names.next("", "KTABLE-MERGE-")
    node = TableJoin(
        joiner=options.joiner,
        left_outer=options.left_outer,
        right_outer=options.right_outer,
        this_join=names.next("-join-this", "KTABLE-JOINTHIS-"),
        other_join=names.next("-join-other", "KTABLE-JOINOTHER-"),
        key=options.key,
        result=options.value,
        materialized=materialization,
    )
    return graph.add(node, merge, _nodes(left, right))


def _by_foreign_key(
    left: Handle, right: Handle, options: TableJoinOptions, by: ForeignKey, foreign_key: Function
) -> ForeignKeyJoin:
    check_selected(f"{options.operator}()", foreign_key, left, right)
    graph = left._graph
    materialization = Materialized.of(options.materialized, history=True)
    names = foreign_key_names(graph.names, options.name)
    result = _JoinNames(graph.names, options.name).next("-result", "KTABLE-FK-JOIN-OUTPUT-")
    node = ForeignKeyJoin(
        foreign_key=foreign_key,
        with_key=by.with_key,
        joiner=options.joiner,
        left_outer=options.left_outer,
        names=names,
        store=materialization.name or graph.names.next("KTABLE-FK-JOIN-OUTPUT-STATE-STORE-"),
        key=options.key,
        result=options.value,
        materialized=materialization,
        partitioner=by.partitioner,
        other_partitioner=by.other_partitioner,
    )
    return graph.add(node, result, _nodes(left, right))


def _nodes(left: Handle, right: Handle) -> tuple[str, str]:
    return left._node.name, right._node.name


def foreign_key_names(names: Names, name: str | None) -> ForeignKeyNames:
    """Return the names of the processors, topics and store of a foreign-key join; as in Kafka Streams, twelve numbers.

    Examples
    --------
    >>> names = foreign_key_names(Names(), None)
    >>> names.registration.topic, names.store
    ('KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000000-topic', 'KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000004')
    >>> names.response.topic
    'KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000008-topic'
    """
    join_names = _JoinNames(names, name)
    join = "KTABLE-FK-JOIN-SUBSCRIPTION"
    topic = join_names.next("-subscription-registration", f"{join}-REGISTRATION-")
    send = join_names.next("-subscription-registration-processor", f"{join}-REGISTRATION-")
    registration = join_names.internal_topic(topic, "-subscription-registration")
    store = join_names.next("-subscription-store", f"{join}-STATE-STORE-")
    receive = join_names.next("-subscription-receive", f"{join}-PROCESSOR-")
    join_foreign = join_names.next("-subscription-join-foreign", f"{join}-PROCESSOR-")
    foreign_join = join_names.next("-foreign-join-subscription", f"{join}-PROCESSOR-")
    response = join_names.internal_topic(
        join_names.next("-subscription-response", f"{join}-RESPONSE-"), "-subscription-response"
    )
    resolver = join_names.next("-subscription-response-resolver", f"{join}-RESPONSE-RESOLVER-PROCESSOR-")
    return ForeignKeyNames(send, registration, store, receive, join_foreign, foreign_join, response, resolver)


class _JoinNames:
    """Names with the prefix of the user, or generated names; both take a number."""

    def __init__(self, names: Names, name: str | None) -> None:
        self._names = names
        self._name = name if name is None else validate_name(name)

    def next(self, suffix: str, prefix: str) -> str:
        return self._names.given_or_next(None if self._name is None else f"{self._name}{suffix}", prefix)

    def internal_topic(self, topic: str, stem: str) -> InternalTopicNames:
        return InternalTopicNames(
            f"{topic}-topic", self.next(f"{stem}-sink", "KTABLE-SINK-"), self.next(f"{stem}-source", "KTABLE-SOURCE-")
        )
