"""Rules of stateless operators of streams; an operator with an expression has a columnar form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kstreams.dsl.analysis.types import TypeOf, Types, pair_returned_by, returned_by, unchanged
from kstreams.dsl.graph import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    Foreach,
    Function,
    Map,
    MapBatch,
    MapHeaders,
    MapValues,
    Merge,
    Peek,
    Print,
    SelectKey,
    Split,
    WithHeaders,
)
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.dsl.return_annotations import return_items, return_pairs
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.expressions.headers import READERS, HeaderValue, header_bytes
from kstreams.expressions.types import split_optional
from kstreams.processor.columns import BatchForm, ProjectForm
from kstreams.processor.context.record_functions import OfRecord
from kstreams.processor.operators import stateless as op
from kstreams.processor.operators.first_warning import FirstWarning
from kstreams.processor.operators.headers import MapHeadersOperator, WithHeadersOperator
from kstreams.processor.operators.map_batch.rows import MapBatchOperator
from kstreams.processor.operators.stateless import Takes


def merge_types(node: Merge, parents: tuple[Types, ...]) -> Types:
    first = parents[0]
    same_key = all(other.key.kind == first.key.kind for other in parents)
    same_value = all(other.value.kind == first.value.kind for other in parents)
    unknown = TypeOf(None, node)
    return Types(first.key if same_key else unknown, first.value if same_value else unknown)


def map_types(node: Map, parents: tuple[Types, ...]) -> Types:
    key, value = pair_returned_by(node, node.function, parents[0])
    return Types(TypeOf(node.key or key, node), TypeOf(node.value or value, node))


def flat_map_types(node: FlatMap, parents: tuple[Types, ...]) -> Types:
    key, value = return_pairs(node.function)
    return Types(TypeOf(node.key or key, node), TypeOf(node.value or value, node))


def map_values_types(node: MapValues, parents: tuple[Types, ...]) -> Types:
    kind = node.value or returned_by(node, node.function, parents[0])
    return Types(parents[0].key, TypeOf(kind, node))


def map_batch_types(node: MapBatch, parents: tuple[Types, ...]) -> Types:
    return Types(parents[0].key, TypeOf(node.value, node))


def flat_map_values_types(node: FlatMapValues, parents: tuple[Types, ...]) -> Types:
    function = node.function
    items = _items_of(function, node, parents[0]) if isinstance(function, Expr) else return_items(function)
    return Types(parents[0].key, TypeOf(node.value or items, node))


def _items_of(items: Expr, node: FlatMapValues, parent: Types) -> Any:
    """Return the type of the items of the list that an expression returns; None if it is not known."""
    returned = returned_by(node, items, parent)
    try:
        kind = returned_by(node, items.list.get(0), parent)
    except TopologyError:
        result = split_optional(returned).kind
        name = getattr(result, "__name__", result)
        raise TopologyError(
            f"{node} needs a list, not {name}, and {items!r} is of type {name}: give a list, such as str.split()"
        ) from None
    return split_optional(kind).kind if kind is not None else None


def select_key_types(node: SelectKey, parents: tuple[Types, ...]) -> Types:
    kind = node.key or returned_by(node, node.function, parents[0])
    return Types(TypeOf(kind, node), parents[0].value)


def takes(function: Function, *, with_key: bool) -> Takes:
    """Return the arguments with which the operator calls the function of a node."""
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
    items = op.items_or_none if isinstance(node.function, Expr) else op.iterable_result
    return build.processor(node, op.FlatMapValuesOperator(function, arguments, text_warning(node), items))


def text_warning(node: FlatMapValues) -> FirstWarning:
    """Return the warning about a function that returns a text instead of several values."""
    return FirstWarning(
        f"the function of {node} returned a text, whose letters are forwarded one by one: to forward it whole, "
        "return [text]"
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
    same_arguments = tuple(
        _without_timestamp(function) if by_record and not isinstance(predicate, Expr | OfRecord) else function
        for predicate, function in zip(node.predicates, predicates, strict=True)
    )
    return build.processor(node, op.SplitOperator(same_arguments, node.branches, arguments))


def _without_timestamp(predicate: Callable[[Any, Any], Any]) -> Callable[[Any, Any, int], Any]:
    return lambda key, value, timestamp: predicate(key, value)


def map_headers(node: MapHeaders, build: Lowering) -> str:
    return build.processor(node, MapHeadersOperator.of(node.function))


def with_headers(node: WithHeaders, build: Lowering) -> str:
    names = tuple(name for name, _ in node.headers)
    values = tuple(_header_function(node, name, value, build) for name, value in node.headers)
    return build.processor(node, WithHeadersOperator(names, values))


def _header_function(
    node: WithHeaders, name: str, value: Expr | HeaderValue, build: Lowering
) -> Callable[..., HeaderValue]:
    """Return a function of a record that returns the value of a header."""
    if not isinstance(value, Expr):
        raw = header_bytes(value)
        return lambda *record: raw
    kind = returned_by(node, value, build.input_types(node))
    plain = next((reader for reader in READERS if kind in (None, reader, reader | None)), None)
    if plain is None:
        raise TopologyError(
            f"{node} makes the header {name!r} of {value!r}, a {getattr(kind, '__name__', kind)}: a header holds text, "
            "bytes, an int, a float or a bool; write a function with map_headers()"
        )
    return build.record_function(node, value, Takes.RECORD.value)


OPERATORS = (
    OperatorDescriptor(node=Filter, types=unchanged, topology=filter_),
    OperatorDescriptor(node=Map, types=map_types, topology=map_),
    OperatorDescriptor(node=MapValues, types=map_values_types, topology=map_values),
    OperatorDescriptor(node=MapBatch, types=map_batch_types, topology=map_batch),
    OperatorDescriptor(node=FlatMap, types=flat_map_types, topology=flat_map),
    OperatorDescriptor(node=FlatMapValues, types=flat_map_values_types, topology=flat_map_values),
    OperatorDescriptor(node=SelectKey, types=select_key_types, topology=select_key),
    OperatorDescriptor(node=Peek, types=unchanged, topology=peek),
    OperatorDescriptor(node=Foreach, types=unchanged, topology=foreach),
    OperatorDescriptor(node=Print, types=unchanged, topology=print_),
    OperatorDescriptor(node=Merge, types=merge_types, topology=pass_on),
    OperatorDescriptor(node=Split, types=unchanged, topology=split),
    OperatorDescriptor(node=Branch, types=unchanged, topology=pass_on),
    OperatorDescriptor(node=MapHeaders, types=unchanged, topology=map_headers),
    OperatorDescriptor(node=WithHeaders, types=unchanged, topology=with_headers),
)
