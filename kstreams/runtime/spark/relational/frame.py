"""`Frame`: a stream on the relational path: serialized keys and values, and typed columns that expressions read.

The typed column of a whole key or value stays next to its bytes, so that later operators need not decode the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import pyarrow as pa

from kstreams.expressions import Expr, Operation, Schema
from kstreams.expressions.frame import to_narwhals
from kstreams.runtime.spark.exchange.rows import FAR_FUTURE_MS
from kstreams.runtime.spark.relational.arrow_call import arrow_call
from kstreams.runtime.spark.relational.codecs import SQL_TYPES, decoded, decoded_for_user, encoded, is_typed
from kstreams.runtime.spark.relational.functions import F
from kstreams.runtime.spark.relational.header_reads import header_as_column
from kstreams.serdes import Serde
from kstreams.serdes.json_columns import JsonColumns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EVENT_TIME = "_event_time"
"""The column of the watermark in windowed queries."""


def leaf_column(side: str, field: str | None = None) -> str:
    """Return the name of the typed column of a whole key or value, or of a field of the value."""
    return f"_leaf_{side}" if field is None else f"_field_{field}"


@dataclass(frozen=True)
class Frame:
    """The rows of one stream.

    Parameters
    ----------
    rows : DataFrame
        The columns origin, offset, timestamp, key, value and headers, and the columns that `leaves` names.
    key, value : Serde
        The serdes of the columns `key` and `value`.
    leaves : mapping of str to str
        The names of existing typed columns, by the `repr` of the expression that reads them.
    """

    rows: DataFrame
    key: Serde
    value: Serde
    leaves: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, rows: DataFrame, key: Serde, value: Serde) -> Frame:
        """Create the frame of a source, which may have typed columns next to the bytes."""
        leaves = {leaf: name for name in rows.columns if (leaf := _leaf_of_column(name)) is not None}
        return cls(rows, key, value, leaves)

    def typed(self, side: str) -> Column:
        """Return the keys or values as a typed column; bytes if Spark has no such type."""
        serde: Serde = getattr(self, side)
        if f"ks.{side}" in self.leaves:
            return F.col(self.leaves[f"ks.{side}"])
        return decoded(serde, F.col(side)) if serde.arrow_type in SQL_TYPES else decoded_for_user(serde, F.col(side))

    def where(self, condition: Column) -> Frame:
        """Return the rows for which a condition holds."""
        if EVENT_TIME in self.rows.columns:
            # Never true. Spark evaluates a condition without this column before its watermark has seen the row.
            condition = condition | (F.col(EVENT_TIME) > F.timestamp_millis(F.lit(FAR_FUTURE_MS)))
        return replace(self, rows=self.rows.where(condition))

    def with_computed(self, expressions: Mapping[str, Expr]) -> Frame:
        """Return the rows with a column for each named expression."""
        if not expressions:
            return self
        frame = self._decoded([leaf for expr in expressions.values() for leaf in expr.leaves])
        schema = Schema(self.key.type, self.value.type)
        columns = [
            to_narwhals(expr, lambda leaf: nw.col(frame.leaves[repr(leaf)]), schema).alias(name)
            for name, expr in expressions.items()
        ]
        computed = nw.from_native(frame.rows).with_columns(*columns)
        return replace(frame, rows=computed.to_native())

    def with_new(self, new: Mapping[str, tuple[Expr, Serde]], where: Column | None = None) -> Frame:
        """Return the rows with the results of expressions as `key`, as `value` or as both; all read the original row.

        The results are null in rows for which `where` is not true.
        """
        frame = self.with_computed({f"_new_{side}": expr for side, (expr, _) in new.items()})
        if where is not None:
            new_columns = {f"_new_{side}": F.when(where, F.col(f"_new_{side}")) for side in new}
            frame = replace(frame, rows=frame.rows.withColumns(new_columns))
        kinds = {field.name: field.dataType.simpleString() for field in frame.rows.schema}
        for side, (_, serde) in new.items():
            frame = frame._with_side(side, serde, kinds[f"_new_{side}"])
        return frame

    def with_typed(self, side: str, typed_column: Column, serde: Serde, kind: str) -> Frame:
        """Return the rows with a column of a Spark type as `key` or `value`."""
        return replace(self, rows=self.rows.withColumn(f"_new_{side}", typed_column))._with_side(side, serde, kind)

    def _with_side(self, side: str, serde: Serde, kind: str) -> Frame:
        """Serialize the new column of a side."""
        name = f"_new_{side}"
        encoded_column = encoded(serde, F.col(name), kind)
        frame = self.with_key(encoded_column, serde) if side == "key" else self.with_value(encoded_column, serde)
        if is_typed(serde, kind):  # later operators read the typed column; Spark does not compute bytes without readers
            frame = replace(frame, leaves={**frame.leaves, f"ks.{side}": name})
        return frame

    def with_key(self, key: Column, serde: Serde) -> Frame:
        """Return the rows with new keys."""
        remaining = {leaf: name for leaf, name in self.leaves.items() if leaf != "ks.key"}
        return replace(self, rows=self.rows.withColumn("key", key), key=serde, leaves=remaining)

    def with_value(self, value: Column, serde: Serde) -> Frame:
        """Return the rows with new values."""
        remaining = {leaf: name for leaf, name in self.leaves.items() if leaf in ("ks.key", "ks.timestamp")}
        return replace(self, rows=self.rows.withColumn("value", value), value=serde, leaves=remaining)

    def _decoded(self, leaves: Sequence[Expr]) -> Frame:
        """Return the frame with these leaves as columns; the fields of a value are decoded together."""
        absent_leaves = {repr(leaf): leaf for leaf in leaves if repr(leaf) not in self.leaves}
        frame = self
        fields = [str(leaf.detail) for leaf in absent_leaves.values() if leaf.operation is Operation.FIELD]
        if fields:
            frame = frame._with_fields(fields)
        for text, leaf in absent_leaves.items():
            if leaf.operation is not Operation.FIELD:
                frame = frame._with_leaf(text, _LEAVES[leaf.operation](self, leaf))
        return frame

    def _with_fields(self, fields: list[str]) -> Frame:
        kinds = JsonColumns(self.value.type, fields).types
        returned = ", ".join(f"`{name}`: {SQL_TYPES[kind]}" for name, kind in kinds.items())
        decoded = arrow_call(f"struct<{returned}>", _fields, (self.value.type, fields), F.col("value"))
        rows = self.rows.withColumn("_fields", decoded)
        rows = rows.select("*", *(F.col(f"_fields.`{name}`").alias(leaf_column("value", name)) for name in fields))
        leaves = {f"ks.col({name!r})": leaf_column("value", name) for name in fields}
        return replace(self, rows=rows.drop("_fields"), leaves={**self.leaves, **leaves})

    def _with_leaf(self, text: str, column: Column) -> Frame:
        # The name of a header may be invalid as the name of a column.
        expression = text.removeprefix("ks.")
        name = f"_leaf_{expression}" if expression.isidentifier() else f"_read_{expression.encode().hex()}"
        return replace(self, rows=self.rows.withColumn(name, column), leaves={**self.leaves, text: name})


_LEAVES: dict[Operation, Callable[[Frame, Expr], Column]] = {
    Operation.KEY: lambda frame, leaf: decoded(frame.key, F.col("key")),
    Operation.VALUE: lambda frame, leaf: decoded(frame.value, F.col("value")),
    Operation.TIMESTAMP: lambda frame, leaf: F.col("timestamp"),
    Operation.HEADER: lambda frame, leaf: header_as_column(leaf.detail),
}


def _leaf_of_column(name: str) -> str | None:
    """Return the `repr` of the expression that reads the typed column of this name."""
    prefix, _, encoded_name = name.removeprefix("_").partition("_")
    return {"leaf": f"ks.{encoded_name}", "field": f"ks.col({encoded_name!r})"}.get(
        prefix if name.startswith("_") else ""
    )


def _fields(kind: Any, fields: list[str], column: pa.Array) -> pa.Array:
    columns = JsonColumns(kind, fields).decode(column)
    return pa.StructArray.from_arrays([columns[name] for name in fields], fields)
