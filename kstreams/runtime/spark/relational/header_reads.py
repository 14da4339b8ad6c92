"""Expressions that read headers on the relational path, in operators whose rows have the headers of their records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from kstreams.dsl import graph as g
from kstreams.expressions import Expr, Operation
from kstreams.expressions.arrow import TYPES
from kstreams.expressions.headers import HeaderRead
from kstreams.kernel.batch import HEADERS_TYPE
from kstreams.processor.columns.source_columns import header_column
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.relational.arrow_call import arrow_call
from kstreams.runtime.spark.relational.codecs import SQL_TYPES
from kstreams.runtime.spark.relational.functions import F

if TYPE_CHECKING:
    from pyspark.sql import Column

BY_TASKS = "only tasks can read the topic, the partition or the offset of a record, or the whole record"
ELSEWHERE = "rows have the headers of their records before joins and aggregates only: tasks read them here"

_READERS = (g.Filter, g.MapValues, g.SelectKey, g.Map, g.Split)
_WITH_HEADERS = (g.StreamSource, *_READERS, g.FlatMap, g.FlatMapValues, g.Branch, g.Merge, g.Repartition)


def unreadable_record(node: g.Node, typed: TypedGraph) -> str | None:
    """Return the reason why rows lack the parts of the current record that a node reads; None if they have them."""
    reads = tuple(g.reads_of_current_record(node))
    if not all(isinstance(read, Expr) and read.operation is Operation.HEADER for read in reads):
        return BY_TASKS
    have_headers = all(isinstance(upstream, _WITH_HEADERS) for upstream in typed.graph.upstream(node))
    return ELSEWHERE if reads and not have_headers else None


def unreadable_header(leaf: Expr) -> str | None:
    """Return the reason why a header cannot be a column."""
    return None if TYPES.get(leaf.detail.result) in SQL_TYPES else f"{leaf!r} has no columnar form"


def header_as_column(read: HeaderRead) -> Column:
    """Return the header that an expression reads, as a column."""
    return arrow_call(SQL_TYPES[TYPES[read.result]], _read, (read,), F.col("headers"))


def _read(read: HeaderRead, headers: pa.Array) -> pa.Array:
    return header_column(read, headers.cast(HEADERS_TYPE), len(headers))
