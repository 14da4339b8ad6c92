"""`FrameSources`: the methods of `StreamsBuilder` that read DataFrames of Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_type_hints

from kstreams.dsl.frame_rows import row_type
from kstreams.dsl.graph import Consumed, StreamSource, TableSource
from kstreams.dsl.graph_builder import GraphBuilder
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.naming import validate_name
from kstreams.errors import TopologyError
from kstreams.kernel.source_line import declared_at
from kstreams.processor.topology.feeds import Feed
from kstreams.serdes import serde_of
from kstreams.serdes.base import without_none

if TYPE_CHECKING:
    from kstreams.dsl.streams.kstream import KStream
    from kstreams.dsl.tables.ktable import KTable


@dataclass(frozen=True, slots=True)
class FrameColumns:
    """The columns of a DataFrame with keys and timestamps, the type of its rows, and the partitions of its topic.

    Parameters
    ----------
    key : str or None
    timestamp : str or None
    row : type or None
        The type of values; None creates one from the schema.
    partitions : int or None
    """

    key: str | None
    timestamp: str | None
    row: Any = None
    partitions: int | None = None

    def feed(self, frame: Any, source: str) -> Feed:
        """Return the feed of a source by a DataFrame, or by a function of the session that returns one.

        Raises
        ------
        TopologyError
            If `frame` is neither, or does not have the columns.
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
        serdes = (serde_of(key), serde_of(row))
        return Feed(source, line, f"{source}-feed", frame, row, self.key, self.timestamp, serdes, self.partitions)


def _check_frame(frame: object, row: object, line: str) -> None:
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


class FrameSources:
    """The methods that read DataFrames as streams and tables."""

    _graph: GraphBuilder

    def from_dataframe(
        self,
        frame: object,
        *,
        key: str | None = None,
        timestamp: str | None = None,
        row: object = None,
        partitions: int | None = None,
        name: str | None = None,
    ) -> KStream[Any, Any]:
        """Read the rows of a DataFrame of Spark as records, each once; only the Spark engine runs it.

        The application reads a static DataFrame once, a streaming one as it grows. With the columns of the change data
        feed of Delta, deleted rows are records without a value.

        Parameters
        ----------
        frame : DataFrame or callable
            A DataFrame, or a function of the session that returns one, such as `ks.spark.delta(path)`; it needs `row`.
        key : str, optional
            The column with the keys.
        timestamp : str, optional
            The column with event times: timestamps, dates, or milliseconds. By default, the commit time in a change
            data feed, else the time of reading.
        row : type, optional
            The type of values, with the columns as fields: a msgspec.Struct, dataclass or TypedDict. By default a
            struct with all columns.
        partitions : int, optional
            Number of partitions of the internal topic of the records; by default that of the topics with which it is
            joined, else 4.
        name : str, optional
            Names the operator and the topic.

        Raises
        ------
        TopologyError
            If a column is missing or has a type without a counterpart.
        """
        graph = self._graph
        source = graph.names.given_or_next(name, "KSTREAM-SOURCE-")
        feed = FrameColumns(key, timestamp, row, partitions).feed(frame, source)
        node = graph.add(StreamSource(topics=(feed.topic,), consumed=_consumed(feed)), source)
        graph.feeds.append(feed)
        return graph.stream(node)

    def table_from_dataframe(
        self,
        frame: object,
        *,
        key: str,
        timestamp: str | None = None,
        row: object = None,
        partitions: int | None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Any, Any]:
        """Read the rows of a DataFrame of Spark as the changes of a table.

        Parameters as for `from_dataframe` and `table`. The last row of a key counts. With the columns of the change
        data feed of Delta, a deleted row deletes its key.
        """
        graph = self._graph
        materialization = Materialized.of(materialized, history=True)
        source_name = None if name is None else f"{validate_name(name)}-source"
        source = graph.names.given_or_next(source_name, "KSTREAM-SOURCE-")
        feed = FrameColumns(key, timestamp, row, partitions).feed(frame, source)
        store = materialization.name or graph.names.next(f"{feed.topic}-STATE-STORE-")
        node = TableSource(
            topic=feed.topic, source=source, store=store, consumed=_consumed(feed), materialized=materialization
        )
        added = graph.add(node, graph.names.given_or_next(name, "KTABLE-SOURCE-"))
        graph.feeds.append(feed)
        return graph.table(added)


def _consumed(feed: Feed) -> Consumed:
    key, value = feed.serdes
    return Consumed(key, value, None, "earliest")
