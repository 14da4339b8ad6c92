"""Rule of foreign-key joins: subscriptions are sent to the right table, responses to the left one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.dsl.analysis.copartition import topics_behind
from kstreams.dsl.analysis.tables import Materialization, TableDemands
from kstreams.dsl.analysis.types import Types
from kstreams.dsl.analysis.types_of_joins import tables_joined
from kstreams.dsl.graph import Node
from kstreams.dsl.graph.table_joins import ForeignKeyJoin, InternalTopicNames, Partitioner
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.dsl.rules.table_joins import keyed_joiner
from kstreams.dsl.rules.tables import table_of_records
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.processor.operators.joins.foreign_key_join import (
    ForeignTableJoinOperator,
    ResponseJoinOperator,
    SubscriptionJoinOperator,
    SubscriptionReceiveOperator,
    SubscriptionSendOperator,
)
from kstreams.processor.topology.nodes import repartition_topic
from kstreams.serdes import BytesSerde
from kstreams.serdes.subscriptions import ResponseSerde, SubscriptionResponse, SubscriptionSerde
from kstreams.state import store_kinds

PURPOSE = "to join by foreign key"


def foreign_key_join(node: ForeignKeyJoin, build: Lowering) -> str:
    """Add the processors in order of their numbers: send, receive, respond, resolve."""
    left = build.input_types(node, 0)
    right = build.input_types(node, 1)
    foreign_key = build.key_serde(node, PURPOSE, right)
    row = build.value_serde(node, PURPOSE, left)
    versioned = build.is_versioned(build.parent(node))
    join = node.names.send
    select = _foreign_key(node, build, right)
    send = SubscriptionSendOperator(select, foreign_key, row, node.left_outer, join, versioned)
    build.processor(node, send, name=node.names.send, parents=build.outputs(node)[:1])
    _right_side(node, build, left, right)
    view = build.view_of_table(node)
    names = node.names
    primary_key = build.key_serde(node, PURPOSE, left)
    resolve = ResponseJoinOperator(view, row, keyed_joiner(node, build), node.left_outer, select, primary_key, join)
    build.processor(node, resolve, name=names.resolver, parents=(names.response.source,), stores=view.stores)
    return table_of_records(node, build, (names.resolver,))


def _right_side(node: ForeignKeyJoin, build: Lowering, left: Types, right: Types) -> None:
    names = node.names
    view = build.view_of_table(node, 1)
    foreign_key = build.key_serde(node, PURPOSE, right)
    primary_key = build.key_serde(node, PURPOSE, left)
    kind = store_kinds.TIMESTAMPED_KEY_VALUE
    subscriptions = SubscriptionSerde(primary_key)
    registration_settings = {"key": foreign_key, "value": subscriptions, "parents": (names.send,)}
    _through_topic(
        node,
        build,
        names.registration,
        1,
        partitioner=_partitioner(node, node.other_partitioner),
        **registration_settings,
    )
    build.store(names.store, kind, Materialized(), key=BytesSerde(), value=subscriptions)
    receive = SubscriptionReceiveOperator(names.store, foreign_key, primary_key)
    build.processor(node, receive, name=names.receive, parents=(names.registration.source,), stores=(names.store,))
    respond = SubscriptionJoinOperator(view, names.store, foreign_key)
    build.processor(node, respond, name=names.join_foreign, parents=(names.receive,), stores=view.stores)
    respond_to_all = ForeignTableJoinOperator(names.store, foreign_key, build.is_versioned(build.parent(node, 1)))
    build.processor(
        node, respond_to_all, name=names.foreign_join, parents=build.outputs(node)[1:], stores=(names.store,)
    )
    responses = ResponseSerde(build.value_serde(node, PURPOSE, right))
    response_settings = {"key": primary_key, "value": responses, "parents": (names.join_foreign, names.foreign_join)}
    choose = _partitioner(node, node.partitioner) or _recorded_partition
    _through_topic(node, build, names.response, 0, partitioner=choose, **response_settings)


def _through_topic(
    node: ForeignKeyJoin, build: Lowering, names: InternalTopicNames, side: int, **written: object
) -> None:
    """Add an internal topic, its sink and its source; copartition it with the topics of the table on one side."""
    build.topology.add_repartition_topic(repartition_topic(names.topic))
    build.sink(node, names.sink, names.topic, **written)
    build.source(node, names.source, (names.topic,), key=written["key"], value=written["value"])
    beside = topics_behind(build.graph, build.parent(node, side))
    build.topology.copartition(dict.fromkeys((*beside, names.topic)))


def _recorded_partition(topic: str, key: object, response: SubscriptionResponse, count: int) -> int | None:
    """Return the partition of the left row, to which its response is sent."""
    return response.partition


def _partitioner(node: ForeignKeyJoin, partitioner: Partitioner | None) -> Callable[..., int] | None:
    """Return a partitioner of the user, which takes keys only and must choose exactly one partition."""
    if partitioner is None:
        return None

    def choose(topic: str, key: object, value: object, count: int) -> int:
        chosen = partitioner(topic, key, None, count)
        if not isinstance(chosen, int):
            raise TopologyError(f"{node}: a partitioner of a join must give one partition, this one gave {chosen!r}")
        return chosen

    return choose


def _foreign_key(node: ForeignKeyJoin, build: Lowering, right: Types) -> Callable[[Any, Any], Any]:
    """Return the function or expression of the user as `foreign_key(key, row)`."""
    function = node.foreign_key
    if isinstance(function, Expr):
        return build.function(node, function, ("key", "value"), right.key)
    return function if node.with_key else lambda key, row: function(row)


def both_send_old_values(node: ForeignKeyJoin, tables: TableDemands, parents: tuple[Node, ...]) -> None:
    """Demand old values, which tell the old subscription, and lookups in both tables."""
    for parent in parents:
        tables.send_old_values(parent, force=True)
        tables.look_up(parent)


OPERATORS = (
    OperatorDescriptor(
        node=ForeignKeyJoin,
        types=tables_joined,
        topology=foreign_key_join,
        materialization=Materialization.ON_DEMAND,
        tables=both_send_old_values,
        store_named_by="name=, and materialized= if its result is kept",
    ),
)
