"""Stateless operators on the relational path: expressions become columns, Python functions Arrow UDFs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from kstreams.dsl import graph as g
from kstreams.dsl.operator import SparkForm
from kstreams.dsl.rules.stateless import text_warning
from kstreams.expressions import Expr
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.relational.arrow_call import arrow_call
from kstreams.runtime.spark.relational.frame import EVENT_TIME, Frame
from kstreams.runtime.spark.relational.functions import F
from kstreams.runtime.spark.relational.lowering import RelationalLowering
from kstreams.runtime.spark.relational.readable import first_reason, unbuildable, unknown_type, unreadable
from kstreams.runtime.spark.relational.rules.function_calls import FunctionCall, with_result
from kstreams.runtime.spark.relational.rules.tasks_only import ORDER
from kstreams.runtime.spark.relational.user_function import UserFunction
from kstreams.serdes import Serde

if TYPE_CHECKING:
    from pyspark.sql import Column

PAIR = "struct<key: binary, value: binary>"


def stream_source(node: g.StreamSource, build: RelationalLowering) -> Frame:
    return build.read(node, node.topics)


def filter_(node: g.Filter, build: RelationalLowering) -> Frame:
    frame, holds = condition(node.predicate, build.parent(node), node, build)
    return frame.where(~holds if node.negate else holds)


def map_values(node: g.MapValues, build: RelationalLowering) -> Frame:
    frame = build.parent(node)
    serde = build.serde(node, "value")
    if isinstance(node.function, Expr):
        return frame.with_new({"value": (node.function, serde)})
    return with_result(frame, "value", serde, FunctionCall.on_rows(node, node.function, frame, node.with_key, build))


def select_key(node: g.SelectKey, build: RelationalLowering) -> Frame:
    frame = build.parent(node)
    serde = build.serde(node, "key")
    if isinstance(node.function, Expr):
        return frame.with_new({"key": (node.function, serde)})
    return with_result(frame, "key", serde, FunctionCall.on_rows(node, node.function, frame, True, build))


def map_(node: g.Map, build: RelationalLowering) -> Frame:
    if not isinstance(node.function, tuple):
        return _with_pairs(node, build, PAIR, _map_pairs, lambda pair: pair)
    new_key, new_value = node.function
    new = {"key": (new_key, build.serde(node, "key")), "value": (new_value, build.serde(node, "value"))}
    return build.parent(node).with_new(new)


def flat_map(node: g.FlatMap, build: RelationalLowering) -> Frame:
    return _with_pairs(node, build, f"array<{PAIR}>", _flat_pairs, F.explode)


def flat_map_values(node: g.FlatMapValues, build: RelationalLowering) -> Frame:
    frame = build.parent(node)
    serde = build.serde(node, "value")
    call = FunctionCall.on_rows(node, node.function, frame, node.with_key, build)
    values = call.column("array<binary>", _flat_values, serde, text_warning(node))
    return frame.with_value(F.explode(values), serde)


def split(node: g.Split, build: RelationalLowering) -> Frame:
    frame = build.parent(node)
    branch = F.lit(len(node.predicates))
    for number, predicate in reversed(list(enumerate(node.predicates))):
        frame, holds = condition(predicate, frame, node, build, f"_holds_{number}")
        branch = F.when(holds, number).otherwise(branch)
    return replace(frame, rows=frame.rows.withColumn("_branch", branch))


def branch(node: g.Branch, build: RelationalLowering) -> Frame:
    parent = build.graph[node.parents[0]]
    assert isinstance(parent, g.Split)
    return build.parent(node).where(F.col("_branch") == parent.branches.index(node.name))


def merge(node: g.Merge, build: RelationalLowering) -> Frame:
    frames = [build.parent(node, position) for position in range(len(node.parents))]
    event_time = [EVENT_TIME] if all(EVENT_TIME in frame.rows.columns for frame in frames) else []
    names = ["origin", "offset", "timestamp", "key", "value", "headers", *event_time]
    rows = frames[0].rows.select(names)
    for frame in frames[1:]:
        rows = rows.unionByName(frame.rows.select(names))
    return Frame(rows, frames[0].key, frames[0].value)


def repartition(node: g.Repartition, build: RelationalLowering) -> Frame:
    """Pass the rows on: Spark shuffles them where it groups or joins them."""
    frame = _as_declared(build.parent(node), node, build)
    return frame if node.name in build.typed.with_null_keys else frame.where(F.col("key").isNotNull())


def condition(
    predicate: object, frame: Frame, node: g.Node, build: RelationalLowering, name: str = "_holds"
) -> tuple[Frame, Column]:
    """Return a predicate as a column that is never null."""
    if isinstance(predicate, Expr):
        return frame.with_computed({name: predicate}), F.coalesce(F.col(name), F.lit(False))
    return frame, FunctionCall.on_rows(node, predicate, frame, True, build).column("boolean", _predicate)


def _as_declared(frame: Frame, node: g.Repartition, build: RelationalLowering) -> Frame:
    """Return the rows, serialized with the serdes of the sink, which may differ from those of its parent."""
    key = build.serde(node, "key")
    value = build.serde(node, "value")
    if key != frame.key:
        frame = frame.with_key(arrow_call("binary", _recoded, (frame.key, key), F.col("key")), key)
    if value != frame.value:
        frame = frame.with_value(arrow_call("binary", _recoded, (frame.value, value), F.col("value")), value)
    return frame


def _with_pairs(
    node: g.Map | g.FlatMap,
    build: RelationalLowering,
    returned: str,
    work: Callable[..., pa.Array],
    convert: Callable[[Column], Column],
) -> Frame:
    frame = build.parent(node)
    key = build.serde(node, "key")
    value = build.serde(node, "value")
    call = FunctionCall.on_rows(node, node.function, frame, True, build)
    rows = frame.rows.withColumn("_pair", convert(call.column(returned, work, (key, value))))
    return replace(frame, rows=rows).with_key(F.col("_pair.key"), key).with_value(F.col("_pair.value"), value)


def _predicate(function: UserFunction, *columns: pa.Array) -> pa.Array:
    return pa.array([bool(holds) for holds in function.results(*columns)], pa.bool_())


def _map_pairs(function: UserFunction, serdes: tuple[Serde, Serde], *columns: pa.Array) -> pa.Array:
    return _struct(function.paired().results(*columns), serdes)


def _flat_pairs(function: UserFunction, serdes: tuple[Serde, Serde], *columns: pa.Array) -> pa.Array:
    lists = function.paired_lists().results(*columns)
    return pa.ListArray.from_arrays(_list_offsets(lists), _struct([pair for pairs in lists for pair in pairs], serdes))


def _flat_values(
    function: UserFunction, serde: Serde, warn_of_text: Callable[[], None], *columns: pa.Array
) -> pa.Array:
    lists = function.listed(warn_of_text).results(*columns)
    values = serde.encode_rows([value for values in lists for value in values])
    return pa.ListArray.from_arrays(_list_offsets(lists), values)


def _struct(pairs: Sequence[tuple[object, object]], serdes: tuple[Serde, Serde]) -> pa.Array:
    columns = zip(*pairs, strict=True) if pairs else ((), ())
    encoded = [serde.encode_rows(list(column)) for serde, column in zip(serdes, columns, strict=True)]
    return pa.StructArray.from_arrays(encoded, ["key", "value"])


def _list_offsets(lists: Iterable[Sized]) -> pa.Array:
    offsets = [0]
    for items in lists:
        offsets.append(offsets[-1] + len(items))
    return pa.array(offsets, pa.int32())


def _recoded(old: Serde, new: Serde, column: pa.Array) -> pa.Array:
    return new.encode_rows(old.decode_rows(column))


def check_source(node: g.StreamSource, typed: TypedGraph) -> str | None:
    if node.pattern is not None:
        return "only tasks read the topics that match a pattern"
    if node.consumed.timestamp_extractor is not None:
        return "its timestamp extractor takes records one after the other"
    return unknown_type(typed.types[node.name].key, "key") or unknown_type(typed.types[node.name].value, "value")


def check_filter(node: g.Filter, typed: TypedGraph) -> str | None:
    return unreadable(node.predicate, typed.of_parent(node))


def check_one_to_one(node: g.MapValues | g.SelectKey | g.TableMapValues, typed: TypedGraph) -> str | None:
    types = typed.types[node.name]
    side = "key" if isinstance(node, g.SelectKey) else "value"
    return (
        unbuildable(node.function)
        or unreadable(node.function, typed.of_parent(node))
        or unknown_type(getattr(types, side), side)
    )


def check_any_number(node: g.Map, typed: TypedGraph) -> str | None:
    types = typed.types[node.name]
    input_types = typed.of_parent(node)
    functions = node.function if isinstance(node.function, tuple) else (node.function,)
    return (
        first_reason(map(unbuildable, functions))
        or first_reason(unreadable(function, input_types) for function in functions)
        or unknown_type(types.key, "key")
        or unknown_type(types.value, "value")
    )


def check_split(node: g.Split, typed: TypedGraph) -> str | None:
    return first_reason(unreadable(predicate, typed.of_parent(node)) for predicate in node.predicates)


def check_merge(node: g.Merge, typed: TypedGraph) -> str | None:
    types = typed.types[node.name]
    return unknown_type(types.key, "key") or unknown_type(types.value, "value")


def check_repartition(node: g.Repartition, typed: TypedGraph) -> str | None:
    if node.partitioner is not None:
        return "its partitioner takes records one by one"
    types = typed.types[node.name]
    return unknown_type(types.key, "key") or unknown_type(types.value, "value")


FORMS: dict[type[g.Node], SparkForm] = {
    g.StreamSource: SparkForm(check=check_source, lower=stream_source),
    g.Filter: SparkForm(check=check_filter, lower=filter_),
    g.MapValues: SparkForm(check=check_one_to_one, lower=map_values),
    g.SelectKey: SparkForm(check=check_one_to_one, lower=select_key),
    g.Map: SparkForm(check=check_any_number, lower=map_),
    g.FlatMap: SparkForm(check=check_any_number, lower=flat_map),
    g.FlatMapValues: SparkForm(check=check_any_number, lower=flat_map_values),
    g.Split: SparkForm(check=check_split, lower=split),
    g.Branch: SparkForm(lower=branch),
    g.Merge: SparkForm(check=check_merge, lower=merge),
    g.Repartition: SparkForm(check=check_repartition, lower=repartition, difference=ORDER),
}
