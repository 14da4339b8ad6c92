"""`SourceColumns`: the columns that a region reads of a batch, decoded; only the fields that its expressions touch."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeAlias

import pyarrow as pa

from kstreams.batch import Batch
from kstreams.errors import SerdeError
from kstreams.expressions import Expr, Operation
from kstreams.processor.topology.nodes import SourceNode
from kstreams.serdes import BytesSerde, Serde

Columns: TypeAlias = "dict[str, pa.Array]"
"""Arrow columns by the leaf they are the values of, as `repr` shows it."""


class SourceColumns:
    """Decodes batches of one source.

    Parameters
    ----------
    source : SourceNode
        Names the serdes.
    leaves : collection of Expr
        What is read of its records.

    Raises
    ------
    SerdeError
        When a leaf has no columnar form.
    """

    def __init__(self, source: SourceNode, leaves: Collection[Expr]) -> None:
        self._key, self._value = source.key or BytesSerde(), source.value or BytesSerde()
        reads = {leaf.operation for leaf in leaves}
        self._reads_key, self._reads_value = Operation.KEY in reads, Operation.VALUE in reads
        if self._reads_key:
            _demand_columns(self._key, "key")
        fields = [leaf.detail for leaf in leaves if leaf.operation is Operation.FIELD]
        self._fields = self._value.field_columns(fields) if fields else None

    def decode(self, batch: Batch) -> Columns:
        """The columns of a batch; raises SerdeError or ArrowException when something does not decode."""
        columns: Columns = {"ks.timestamp": batch.timestamps}
        if self._reads_key:
            columns["ks.key"] = self._key.decode_column(self._key.framed(batch.keys, batch.headers))
        values = self._value.framed(batch.values, batch.headers)
        if self._reads_value:
            has_columns = self._value.arrow_type is not None
            columns["ks.value"] = self._value.decode_column(values) if has_columns else values
        if self._fields is not None:
            columns |= {repr_of_field(name): found for name, found in self._fields.decode(values).items()}
        return columns


def repr_of_field(name: str) -> str:
    """Under which name `Columns` holds a field."""
    return repr(Expr(Operation.FIELD, (), name))


def _demand_columns(serde: Serde[Any], what: str) -> None:
    if serde.arrow_type is None:
        raise SerdeError(f"{what}s of {serde!r} have no columnar form")
