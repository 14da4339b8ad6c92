"""`FunctionCall`: a Python function on rows; its arguments and results are typed if Catalyst can convert them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from kstreams.dsl import graph as g
from kstreams.runtime.spark.relational.arrow_call import arrow_call
from kstreams.runtime.spark.relational.codecs import SQL_TYPES, decoded, in_catalyst
from kstreams.runtime.spark.relational.frame import Frame
from kstreams.runtime.spark.relational.functions import F
from kstreams.runtime.spark.relational.lowering import RelationalLowering
from kstreams.runtime.spark.relational.user_function import RECORD_ID, TypedColumn, UserFunction
from kstreams.serdes import Serde

if TYPE_CHECKING:
    from pyspark.sql import Column


class Argument(NamedTuple):
    """A column, and the decoder of a function's argument."""

    column: Column
    reads: Serde | TypedColumn

    @classmethod
    def of(cls, serde: Serde, column: Column) -> Argument:
        """Create the argument of a serialized column."""
        return cls(decoded(serde, column), TypedColumn(serde)) if in_catalyst(serde) else cls(column, serde)

    @classmethod
    def of_side(cls, frame: Frame, side: str) -> Argument:
        """Create the argument of the keys or the values of a frame."""
        serde: Serde = getattr(frame, side)
        return cls(frame.typed(side), TypedColumn(serde)) if in_catalyst(serde) else cls(F.col(side), serde)


class FunctionCall(NamedTuple):
    """A Python function of the user and its columns: the arguments, then the columns that identify the record."""

    function: UserFunction
    columns: tuple[Column, ...]

    @classmethod
    def of(
        cls,
        node: g.Node,
        function: Any,
        arguments: Iterable[Argument],
        build: RelationalLowering,
        record_id: Iterable[str] = RECORD_ID,
    ) -> FunctionCall:
        """Create the call of a function that the user passed to a node."""
        columns, reads = zip(*arguments, strict=True)
        return cls(build.function(node, function, reads), (*columns, *map(F.col, record_id)))

    @classmethod
    def on_rows(
        cls, node: g.Node, function: object, frame: Frame, with_key: bool, build: RelationalLowering
    ) -> FunctionCall:
        """Create the call of a function of keys and values, or of values alone."""
        sides = ("key", "value") if with_key else ("value",)
        return cls.of(node, function, [Argument.of_side(frame, side) for side in sides], build)

    def column(self, returned: str, work: Callable[..., pa.Array], *arguments: object) -> Column:
        """Return `work(function, *arguments, *arrays)`, which takes whole Arrow arrays, as a column of a Spark type."""
        return arrow_call(returned, work, (self.function, *arguments), *self.columns)

    def serialized(self, serde: Serde) -> Column:
        """Return the serialized result of the function for each row."""
        return self.column("binary", _serialized, serde)


def with_result(frame: Frame, side: str, serde: Serde, call: FunctionCall) -> Frame:
    """Return the rows with the result of a function as key or value, typed if Spark can encode it."""
    if serde.arrow_type is not None and in_catalyst(serde):
        kind = SQL_TYPES[serde.arrow_type]
        return frame.with_typed(side, call.column(kind, _typed, serde), serde, kind)
    result = call.serialized(serde)
    return frame.with_key(result, serde) if side == "key" else frame.with_value(result, serde)


def _serialized(function: UserFunction, serde: Serde, *columns: pa.Array) -> pa.Array:
    return serde.encode_rows(function.results(*columns))


def _typed(function: UserFunction, serde: Serde, *columns: pa.Array) -> pa.Array:
    results = function.results(*columns)
    if set(map(type, results)) <= {serde.type, NoneType}:
        with suppress(pa.ArrowException, OverflowError, UnicodeError):
            return pa.array(results, serde.arrow_type)
    return serde.decode_column(serde.encode_rows(results))  # the serde converts other types, or refuses them
