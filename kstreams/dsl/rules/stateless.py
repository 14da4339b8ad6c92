"""Rules of stateless operators. Those that have a columnar form offer it when the user gave an expression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kstreams.dsl.analysis.types import unchanged
from kstreams.dsl.analysis.types_of_streams import (
    batch_mapped,
    flat_mapped,
    mapped,
    merged,
    rekeyed,
    values_flat_mapped,
    values_mapped,
)
from kstreams.dsl.graph import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    Foreach,
    Function,
    Map,
    MapBatch,
    MapValues,
    Merge,
    Peek,
    Print,
    SelectKey,
    Split,
)
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.expressions import Expr
from kstreams.processor.columns import BatchForm, ProjectForm
from kstreams.processor.context.record_functions import OfRecord
from kstreams.processor.operators import stateless as op
from kstreams.processor.operators.first_warning import FirstWarning
from kstreams.processor.operators.map_batch.rows import MapBatchOperator
from kstreams.processor.operators.stateless import Takes


def takes(function: Function, *, with_key: bool) -> Takes:
    """What the live function of a node is called with."""
    if isinstance(function, Expr | OfRecord):
        return Takes.RECORD
    return Takes.KEY_VALUE if with_key else Takes.VALUE


def filter_(node: Filter, build: Lowering) -> str:
    arguments = takes(node.predicate, with_key=True)
    predicate = build.record_function(node, node.predicate, arguments.value)
    columns = None
    if isinstance(node.predicate, Expr):
        columns = ProjectForm(where=~node.predicate.fill_null(False) if node.negate else node.predicate)
    return build.processor(node, op.FilterOperator(predicate, node.negate, arguments), columns=columns)


def map_values(node: MapValues, build: Lowering) -> str:
    arguments = takes(node.function, with_key=node.with_key)
    result_type = build.types[node.name].value
    columns = None
    if isinstance(node.function, Expr):
        columns = ProjectForm(value=node.function, value_type=result_type.python)
    function = build.record_function(node, node.function, arguments.value, result_type)
    return build.processor(node, op.MapValuesOperator(function, arguments), columns=columns)


def map_batch(node: MapBatch, build: Lowering) -> str:
    input_types = build.input_types(node)
    result_type = build.types[node.name].value.python
    frames = replace(node.frames, key=input_types.key.python, kind=input_types.value.python)
    columns = BatchForm(frames.fields, frames.with_key) if frames.is_columnar else None
    return build.processor(node, MapBatchOperator(node.function, frames, result_type, node.max_rows), columns=columns)


def flat_map_values(node: FlatMapValues, build: Lowering) -> str:
    arguments = takes(node.function, with_key=node.with_key)
    function = build.record_function(node, node.function, arguments.value)
    return build.processor(node, op.FlatMapValuesOperator(function, arguments, gave_text(node)))


def gave_text(node: FlatMapValues) -> FirstWarning:
    """The advice about a function that returns a text where several values are expected."""
    return FirstWarning(
        f"the function of {node} gave a text, whose letters go on one by one: to pass it on whole, return [text]"
    )


def select_key(node: SelectKey, build: Lowering) -> str:
    arguments = takes(node.function, with_key=True)
    result_type = build.types[node.name].key
    columns = None
    if isinstance(node.function, Expr):
        columns = ProjectForm(key=node.function, key_type=result_type.python)
    function = build.record_function(node, node.function, arguments.value, result_type)
    return build.processor(node, op.SelectKeyOperator(function, arguments), columns=columns)


def map_(node: Map, build: Lowering) -> str:
    if not isinstance(node.function, tuple):
        return build.processor(node, op.MapOperator(node.function, takes(node.function, with_key=True)))
    types = build.types[node.name]
    functions = build.record_pair(node, node.function, Takes.RECORD.value)
    key, value = node.function
    columns = ProjectForm(key=key, value=value, key_type=types.key.python, value_type=types.value.python)
    return build.processor(node, op.MapRecordOperator(*functions), columns=columns)


def flat_map(node: FlatMap, build: Lowering) -> str:
    return build.processor(node, op.FlatMapOperator(node.function, takes(node.function, with_key=True)))


def peek(node: Peek, build: Lowering) -> str:
    return build.processor(node, op.PeekOperator(node.function, takes(node.function, with_key=True)))


def foreach(node: Foreach, build: Lowering) -> str:
    return build.processor(node, op.ForeachOperator(node.function, takes(node.function, with_key=True)))


def print_(node: Print, build: Lowering) -> str:
    return build.processor(node, op.PrintOperator(node.label, node.mapper, node.file))


def pass_on(node: Merge | Branch, build: Lowering) -> str:
    return build.processor(node, op.PassOperator(), columns=ProjectForm())


def split(node: Split, build: Lowering) -> str:
    by_record = any(isinstance(predicate, Expr | OfRecord) for predicate in node.predicates)
    arguments = Takes.RECORD if by_record else Takes.KEY_VALUE
    predicates = (build.record_function(node, predicate, arguments.value) for predicate in node.predicates)
    alike = tuple(
        _without_timestamp(function) if by_record and not isinstance(predicate, Expr | OfRecord) else function
        for predicate, function in zip(node.predicates, predicates, strict=True)
    )
    return build.processor(node, op.SplitOperator(alike, node.branches, arguments))


def _without_timestamp(predicate: Callable[[Any, Any], Any]) -> Callable[[Any, Any, int], Any]:
    return lambda key, value, timestamp: predicate(key, value)


OPERATORS = (
    OperatorDescriptor(node=Filter, types=unchanged, topology=filter_),
    OperatorDescriptor(node=Map, types=mapped, topology=map_),
    OperatorDescriptor(node=MapValues, types=values_mapped, topology=map_values),
    OperatorDescriptor(node=MapBatch, types=batch_mapped, topology=map_batch),
    OperatorDescriptor(node=FlatMap, types=flat_mapped, topology=flat_map),
    OperatorDescriptor(node=FlatMapValues, types=values_flat_mapped, topology=flat_map_values),
    OperatorDescriptor(node=SelectKey, types=rekeyed, topology=select_key),
    OperatorDescriptor(node=Peek, types=unchanged, topology=peek),
    OperatorDescriptor(node=Foreach, types=unchanged, topology=foreach),
    OperatorDescriptor(node=Print, types=unchanged, topology=print_),
    OperatorDescriptor(node=Merge, types=merged, topology=pass_on),
    OperatorDescriptor(node=Split, types=unchanged, topology=split),
    OperatorDescriptor(node=Branch, types=unchanged, topology=pass_on),
)
