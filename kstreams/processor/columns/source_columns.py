"""The columns of a region: `SourceColumns` decodes the fields of a batch, and `Evaluation` computes expressions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

import pyarrow as pa

from kstreams.errors import SerdeError
from kstreams.expressions import Expr, Operation
from kstreams.expressions.arrow import TYPES, compute
from kstreams.expressions.exactness import range_of
from kstreams.expressions.headers import HeaderRead
from kstreams.kernel.batch import Batch, last_headers
from kstreams.processor.topology.nodes import SourceNode
from kstreams.serdes import BytesSerde, Serde

Columns: TypeAlias = "dict[str, pa.Array]"
"""Arrow columns by the `repr` of the expression that each holds the values of."""


class SourceColumns:
    """The decoder of one source's batches.

    Parameters
    ----------
    source : SourceNode
        The source with the serdes.
    leaves : collection of Expr
        The parts of the records that are read.

    Raises
    ------
    SerdeError
        If a leaf has no columnar form.
    """

    def __init__(self, source: SourceNode, leaves: Collection[Expr]) -> None:
        self._key = source.key or BytesSerde()
        self._value = source.value or BytesSerde()
        reads = {leaf.operation for leaf in leaves}
        self._reads_key = Operation.KEY in reads
        self._reads_value = Operation.VALUE in reads
        if self._reads_key:
            _demand_columns(self._key, "key")
        self._of_place = {repr(leaf): _PLACES[leaf.operation] for leaf in leaves if leaf.operation in _PLACES}
        self._headers = {repr(leaf): leaf.detail for leaf in leaves if leaf.operation is Operation.HEADER}
        for read in self._headers.values():
            _demand_column_of(read)
        if Operation.HEADERS in reads:
            raise SerdeError("all headers of a record are no column")
        fields = [leaf.detail for leaf in leaves if leaf.operation is Operation.FIELD]
        self._fields = self._value.field_columns(fields) if fields else None

    def decode(self, batch: Batch) -> Columns:
        """Return the columns of a batch. Raises SerdeError or ArrowException if a row does not decode."""
        columns: Columns = {"ks.timestamp": batch.timestamps}
        if self._reads_key:
            columns["ks.key"] = self._key.decode_column(self._key.framed(batch.keys, batch.headers))
        values = self._value.framed(batch.values, batch.headers)
        if self._reads_value:
            has_columns = self._value.arrow_type is not None
            columns["ks.value"] = self._value.decode_column(values) if has_columns else values
        if self._fields is not None:
            columns |= {
                repr_of_field(name): values_of_field for name, values_of_field in self._fields.decode(values).items()
            }
        columns |= {text: column(batch) for text, column in self._of_place.items()}
        columns |= {text: header_column(read, batch.headers, len(batch)) for text, read in self._headers.items()}
        return columns


def header_column(read: HeaderRead, headers: pa.Array | None, length: int) -> pa.Array:
    """Return the column of a header read; nulls if there are no headers."""
    if headers is None:
        return pa.nulls(length, TYPES[read.result])
    raw = last_headers(headers, read.name)
    if read.kind is bytes:
        return raw
    try:
        return raw.cast(pa.string()) if read.kind is str else _read_once(read, raw)
    except pa.ArrowInvalid:  # a header is not valid UTF-8
        return _read_once(read, raw)


def _read_once(read: HeaderRead, raw: pa.Array) -> pa.Array:
    """Return the values of headers; equal headers are read once."""
    encoded = raw.dictionary_encode()
    values = [read.read(entry) for entry in encoded.dictionary.to_pylist()]
    return pa.array(values, TYPES[read.result]).take(encoded.indices)


def _demand_column_of(read: HeaderRead) -> None:
    if read.result not in TYPES:
        raise SerdeError(f"ks.header({read}) has no columnar form")


_PLACES: dict[Operation, Callable[[Batch], pa.Array]] = {
    Operation.TOPIC: lambda batch: pa.repeat(pa.scalar(batch.source.topic), len(batch)),
    Operation.PARTITION: lambda batch: pa.repeat(pa.scalar(batch.source.partition, pa.int64()), len(batch)),
    Operation.OFFSET: lambda batch: pa.array(batch.offsets),
}
"""The columns of topic, partition and offset of a batch."""


def repr_of_field(name: str) -> str:
    """Return the name of a field in `Columns`."""
    return repr(Expr(Operation.FIELD, (), name))


def _demand_columns(serde: Serde, description: str) -> None:
    if serde.arrow_type is None:
        raise SerdeError(f"{description}s of {serde!r} have no columnar form")


class Evaluation:
    """The distinct expressions of a region, each computed once per batch.

    Parameters
    ----------
    expressions : sequence of Expr
        Expressions over a source's columns.
    """

    def __init__(self, expressions: Sequence[Expr]) -> None:
        distinct = {repr(expr): expr for expr in expressions}
        self._computed = {text: expr for text, expr in distinct.items() if not expr.operation.is_leaf}

    def compute(self, columns: Columns) -> Columns:
        """Return `columns` and the columns of the expressions, by the `repr` of the expression.

        Raises
        ------
        Inexact
            If columns would give other results than Python for this batch.
        """
        for expr in self._computed.values():
            range_of(expr, lambda leaf: columns[repr(leaf)])
        values: dict[str, object] = dict(columns)
        for text, expr in self._computed.items():
            result = compute(expr, values)
            if isinstance(result, pa.Scalar):
                values[text] = pa.repeat(result, len(columns["ks.timestamp"]))
        return values


def columns_needed(expr: Expr) -> tuple[Expr, ...]:
    """Return the expressions to compute for a key or value: for a struct its fields, from which objects are built."""
    return expr.inputs if is_struct(expr) else (expr,)


def is_struct(expr: Expr) -> bool:
    """Return whether an expression is a `ks.struct`, from which objects are built."""
    return expr.operation is Operation.STRUCT
