"""Rules of operators that change headers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.dsl.analysis.types import returned_by, unchanged
from kstreams.dsl.graph.stateless import MapHeaders, WithHeaders
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.expressions.headers import READERS, header_bytes
from kstreams.processor.operators.headers import MapHeadersOperator, WithHeadersOperator
from kstreams.processor.operators.stateless import Takes


def map_headers(node: MapHeaders, build: Lowering) -> str:
    return build.processor(node, MapHeadersOperator.of(node.function))


def with_headers(node: WithHeaders, build: Lowering) -> str:
    names = tuple(name for name, _ in node.headers)
    values = tuple(_value_of(node, name, value, build) for name, value in node.headers)
    return build.processor(node, WithHeadersOperator(names, values))


def _value_of(node: WithHeaders, name: str, value: Any, build: Lowering) -> Callable[..., Any]:
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
    OperatorDescriptor(node=MapHeaders, types=unchanged, topology=map_headers),
    OperatorDescriptor(node=WithHeaders, types=unchanged, topology=with_headers),
)
