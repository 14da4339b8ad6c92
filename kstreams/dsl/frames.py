"""DataFrames as sources: what `from_dataframe` and `table_from_dataframe` make of their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from kstreams.dsl.frame_rows import row_type
from kstreams.errors import TopologyError
from kstreams.kernel.source_line import declared_at
from kstreams.processor.topology.feeds import Feed
from kstreams.serdes import serde_of
from kstreams.serdes.base import without_none


@dataclass(frozen=True, slots=True)
class FrameColumns:
    """Which columns of a DataFrame are what.

    Parameters
    ----------
    key : str or None
    timestamp : str or None
    row : type or None
        What a row becomes; None: made from the schema.
    partitions : int or None
    """

    key: str | None
    timestamp: str | None
    row: Any = None
    partitions: int | None = None

    def feed(self, frame: Any, source: str) -> Feed:
        """The feed of a source by a DataFrame, or by a function of the session that gives one.

        Raises
        ------
        TopologyError
            When it is neither, or has no such columns.
        """
        line = declared_at()
        _check_frame(frame, self.row, line)
        row = self.row or row_type(f"Row_{_identifier(source)}", frame.schema.jsonValue())
        fields = _fields(row, line)
        for column in filter(None, (self.key, self.timestamp)):
            if column not in fields:
                raise TopologyError(f"the rows at {line} have no column {column!r}; they have: {', '.join(fields)}")
        if self.partitions is not None and self.partitions < 1:
            raise TopologyError(f"the rows at {line} cannot be in {self.partitions} partitions: at least 1")
        key = bytes if self.key is None else without_none(fields[self.key])
        serdes = serde_of(key), serde_of(row)
        columns = row, self.key, self.timestamp
        return Feed(source, line, f"{source}-feed", frame, *columns, serdes, self.partitions)


def _check_frame(frame: Any, row: Any, line: str) -> None:
    if callable(frame):
        if row is None:
            raise TopologyError(
                f"the source at {line} gets its DataFrame when Spark runs, so its columns are not known yet: name the "
                "type of its rows with row="
            )
    elif not hasattr(frame, "schema") or not hasattr(frame, "isStreaming"):
        raise TopologyError(
            f"the source at {line} reads a {type(frame).__name__}, not a DataFrame of Spark or a function that gives "
            "one: spark.createDataFrame(...) makes one"
        )


def _fields(row: Any, line: str) -> Mapping[str, Any]:
    hints = get_type_hints(row) if isinstance(row, type) else {}
    if not hints:
        raise TopologyError(
            f"row= at {line} is {row!r}, which has no fields: give a msgspec.Struct, dataclass or TypedDict with the "
            "columns as fields"
        )
    return hints


def _identifier(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)
