"""Stateless operators on the relational path: expressions become columns, Python functions Arrow UDFs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from kstreams.dsl import graph as g
from kstreams.dsl.rules.stateless import gave_text
from kstreams.expressions import Expr
from kstreams.runtime.spark.relational.frame import EVENT_TIME, Frame, arrow_call, encoded
from kstreams.runtime.spark.relational.lowering import Lowering, relational
from kstreams.runtime.spark.relational.user_function import PLACE, UserFunction
from kstreams.serdes import Serde

PAIR = "struct<key: binary, value: binary>"


@relational.rule(g.StreamSource)
def stream_source(node: g.StreamSource, build: Lowering) -> Frame:
    return build.read(node, node.topics)


@relational.rule(g.Filter)
def filter_(node: g.Filter, build: Lowering) -> Frame:
    frame, holds = condition(node.predicate, build.parent(node), node, build)
    return frame.where(~holds if node.negate else holds)


@relational.rule(g.MapValues)
def map_values(node: g.MapValues, build: Lowering) -> Frame:
    frame, serde = build.parent(node), build.serde(node, "value")
    if isinstance(node.function, Expr):
        frame = frame.with_computed({"_new": node.function})
        return frame.with_value(encoded(serde, F.col("_new")), serde)
    return frame.with_value(_mapped(node, node.with_key, build, serde), serde)


@relational.rule(g.SelectKey)
def select_key(node: g.SelectKey, build: Lowering) -> Frame:
    frame, serde = build.parent(node), build.serde(node, "key")
    if isinstance(node.function, Expr):
        frame = frame.with_computed({"_new": node.function})
        return frame.with_key(encoded(serde, F.col("_new")), serde)
    return frame.with_key(_mapped(node, True, build, serde), serde)


@relational.rule(g.Map)
def map_(node: g.Map, build: Lowering) -> Frame:
    return _with_pairs(node, build, PAIR, _map_pairs, lambda pair: pair)


@relational.rule(g.FlatMap)
def flat_map(node: g.FlatMap, build: Lowering) -> Frame:
    return _with_pairs(node, build, f"array<{PAIR}>", _flat_pairs, F.explode)


@relational.rule(g.FlatMapValues)
def flat_map_values(node: g.FlatMapValues, build: Lowering) -> Frame:
    frame, serde = build.parent(node), build.serde(node, "value")
    function = build.function(node, node.function, _reads(frame, node.with_key))
    made = arrow_call("array<binary>", _flat_values, (function, serde, gave_text(node)), *_columns(node.with_key))
    return frame.with_value(F.explode(made), serde)


@relational.rule(g.Split)
def split(node: g.Split, build: Lowering) -> Frame:
    frame, taken = build.parent(node), F.lit(len(node.predicates))
    for number, predicate in reversed(list(enumerate(node.predicates))):
        frame, holds = condition(predicate, frame, node, build, f"_holds_{number}")
        taken = F.when(holds, number).otherwise(taken)
    return replace(frame, rows=frame.rows.withColumn("_branch", taken))


@relational.rule(g.Branch)
def branch(node: g.Branch, build: Lowering) -> Frame:
    parent = build.graph[node.parents[0]]
    assert isinstance(parent, g.Split)
    return build.parent(node).where(F.col("_branch") == parent.branches.index(node.name))


@relational.rule(g.Merge)
def merge(node: g.Merge, build: Lowering) -> Frame:
    frames = [build.parent(node, position) for position in range(len(node.parents))]
    timed = [EVENT_TIME] if EVENT_TIME in frames[0].rows.columns else []
    names = ("origin", "offset", "timestamp", "key", "value", "headers", *timed)
    plain = [frame.rows.select(*names) for frame in frames]
    rows = plain[0]
    for other in plain[1:]:
        rows = rows.unionByName(other)
    return Frame(rows, frames[0].key, frames[0].value)


@relational.rule(g.To)
def to(node: g.To, build: Lowering) -> None:
    build.write(str(node.topic), _as_declared(build.parent(node), node, build))


@relational.rule(g.Repartition)
def repartition(node: g.Repartition, build: Lowering) -> Frame | None:
    """Written by the sub-topology before it, read by the one after it."""
    if not build.has_parent(node):
        return build.read(node, [node.topic])
    frame = _as_declared(build.parent(node), node, build)
    build.write(node.topic, frame, None if node.name in build.facts.with_null_keys else node.filter)
    return None


def condition(
    predicate: Any, frame: Frame, node: g.Node, build: Lowering, name: str = "_holds"
) -> tuple[Frame, Column]:
    """A predicate as a column that is never null."""
    if isinstance(predicate, Expr):
        return frame.with_computed({name: predicate}), F.coalesce(F.col(name), F.lit(False))
    function = build.function(node, predicate, _reads(frame, True))
    return frame, arrow_call("boolean", _predicate, (function,), *_columns(True))


def _as_declared(frame: Frame, node: g.To | g.Repartition, build: Lowering) -> Frame:
    """A sink may write another serde than its parent's values have."""
    key, value = build.serde(node, "key"), build.serde(node, "value")
    if key != frame.key:
        frame = frame.with_key(arrow_call("binary", _again, (frame.key, key), F.col("key")), key)
    if value != frame.value:
        frame = frame.with_value(arrow_call("binary", _again, (frame.value, value), F.col("value")), value)
    return frame


def _mapped(node: g.MapValues | g.SelectKey, with_key: bool, build: Lowering, serde: Serde[Any]) -> Column:
    function = build.function(node, node.function, _reads(build.parent(node), with_key))
    return arrow_call("binary", _map, (function, serde), *_columns(with_key))


def _with_pairs(
    node: g.Map | g.FlatMap,
    build: Lowering,
    returned: str,
    work: Callable[..., pa.Array],
    each: Callable[[Column], Column],
) -> Frame:
    frame, key, value = build.parent(node), build.serde(node, "key"), build.serde(node, "value")
    given = (build.function(node, node.function, _reads(frame, True)), (key, value))
    rows = frame.rows.withColumn("_pair", each(arrow_call(returned, work, given, *_columns(True))))
    return replace(frame, rows=rows).with_key(F.col("_pair.key"), key).with_value(F.col("_pair.value"), value)


def _reads(frame: Frame, with_key: bool) -> tuple[Serde[Any], ...]:
    return (frame.key, frame.value) if with_key else (frame.value,)


def _columns(with_key: bool) -> list[Column]:
    return [F.col(name) for name in (("key", "value", *PLACE) if with_key else ("value", *PLACE))]


# What the UDFs do with whole Arrow arrays.


def _predicate(function: UserFunction, *columns: pa.Array) -> pa.Array:
    return pa.array([bool(holds) for holds in function.results(*columns)], pa.bool_())


def _map(function: UserFunction, serde: Serde[Any], *columns: pa.Array) -> pa.Array:
    return serde.encode_rows(function.results(*columns))


def _map_pairs(function: UserFunction, serdes: tuple[Serde[Any], Serde[Any]], *columns: pa.Array) -> pa.Array:
    return _struct(function.results(*columns), serdes)


def _flat_pairs(function: UserFunction, serdes: tuple[Serde[Any], Serde[Any]], *columns: pa.Array) -> pa.Array:
    lists = function.listed().results(*columns)
    return pa.ListArray.from_arrays(_ends(lists), _struct([pair for pairs in lists for pair in pairs], serdes))


def _flat_values(
    function: UserFunction, serde: Serde[Any], gave_text: Callable[[], None], *columns: pa.Array
) -> pa.Array:
    lists = function.listed(gave_text).results(*columns)
    return pa.ListArray.from_arrays(_ends(lists), serde.encode_rows([value for values in lists for value in values]))


def _struct(pairs: list[Any], serdes: tuple[Serde[Any], Serde[Any]]) -> pa.Array:
    columns = zip(*pairs, strict=True) if pairs else ((), ())
    encoded_ = [serde.encode_rows(list(column)) for serde, column in zip(serdes, columns, strict=True)]
    return pa.StructArray.from_arrays(encoded_, ["key", "value"])


def _ends(lists: list[list[Any]]) -> pa.Array:
    ends = [0]
    for items in lists:
        ends.append(ends[-1] + len(items))
    return pa.array(ends, pa.int32())


def _again(old: Serde[Any], new: Serde[Any], column: pa.Array) -> pa.Array:
    return new.encode_rows(old.decode_rows(column))
