"""`dataframe_of`: a stream of the DSL as a DataFrame, by Spark's own operators: a part of a query of the user's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kstreams.config import Config
from kstreams.dsl import graph as g
from kstreams.dsl.graph import LogicalGraph, Node
from kstreams.dsl.graph_builder import GraphBuilder
from kstreams.dsl.passes.optimize import source_defaults
from kstreams.errors import TopologyError
from kstreams.processor.topology.feeds import Feed
from kstreams.runtime.spark.cluster.session import quiet, spark_session
from kstreams.runtime.spark.coupling import Admission
from kstreams.runtime.spark.feeds.frame_source import frame_source
from kstreams.runtime.spark.io.open_homes import HomePlace
from kstreams.runtime.spark.io.source import read_stream, register, rows_until_now, share_of
from kstreams.runtime.spark.relational.frame import EVENT_TIME
from kstreams.runtime.spark.relational.lowering import RelationalLowering
from kstreams.runtime.spark.relational.path_plan import FOLLOWED_BY_TASKS, needs_tasks, unsupported_reason
from kstreams.runtime.spark.relational.states_in_query import delay_of_query, unsupported_in_query
from kstreams.runtime.spark.relational.typed_graph import TypedGraph
from kstreams.runtime.spark.relational.user_function import origin_column
from kstreams.runtime.spark.relational.windowed_query import (
    follows_time,
    keeps_state,
    takes_one_by_one,
)
from kstreams.runtime.spark.settings import SparkSettings


def dataframe_of(
    builder: GraphBuilder, node: Node, session: SparkSession | None, config: Mapping[str, object] | None
) -> DataFrame:
    """See `KStream.to_dataframe`."""
    settings = Config.of(config)
    declared = builder.graph()
    before = {upstream.name for upstream in declared.upstream(declared[node.name])}
    graph = source_defaults(LogicalGraph(upstream for upstream in declared if upstream.name in before), settings)
    typed = TypedGraph(graph)
    nodes = tuple(
        upstream for upstream in graph if not isinstance(upstream, g.GlobalTableSource)
    )  # read by those who join it
    delay_ms = delay_of_query(nodes, typed) if any(map(follows_time, nodes)) else None
    sources = _Sources(session, settings, builder.feeds, nodes, delay_ms)
    _require_forms(nodes, typed, needs_tasks(settings), is_stream=sources.is_stream)
    lowering = RelationalLowering(typed, sources.rows, {}, sources.topics, sources.whole)
    lowering.run(nodes)
    frame = lowering.frame(_before_exchanges(graph, node).name)
    times = F.timestamp_millis("timestamp").alias("timestamp")
    return frame.rows.select(frame.typed("key").alias("key"), frame.typed("value").alias("value"), times)


def _before_exchanges(graph: LogicalGraph, node: Node) -> Node:
    """The node whose rows a repartition would give on: where nothing follows, there is nothing to exchange them for."""
    while isinstance(node, g.Repartition):
        [node] = graph.parents(node)
    return node


def _require_forms(nodes: Sequence[Node], typed: TypedGraph, only_tasks: str | None, *, is_stream: bool) -> None:
    has_state = any(map(keeps_state, nodes))
    for node in nodes:
        reason = unsupported_reason(node, typed) if only_tasks is None else FOLLOWED_BY_TASKS.format(only_tasks)
        if reason is None and has_state:
            reason = unsupported_in_query(node, nodes, typed)
        if reason is None and takes_one_by_one(node, typed) and not is_stream:
            reason = "Spark keeps state for it in streaming queries only, and its sources are static"
        if reason is not None:
            raise TopologyError(
                f"{node} cannot be part of a DataFrame: {reason}. Write the stream to a topic, run it by "
                "ks.spark.start, and read run.to_dataframe(topic)."
            )


class _Fed(NamedTuple):
    """A DataFrame that stands for a topic."""

    feed: Feed
    rows: DataFrame


class _Sources:
    """The rows of topics and DataFrames, in the columns of a topic, with a watermark where windows need one.

    Parameters
    ----------
    session : SparkSession or None
        None: one is started as the settings say.
    config : Config
    feeds : sequence of Feed
        The DataFrames that stand for topics.
    nodes : sequence of Node
        The operators that read them.
    delay_ms : int or None
        How far the watermark stays behind the greatest time seen. None: no operator follows time.
    """

    def __init__(
        self,
        session: SparkSession | None,
        config: Config,
        feeds: Sequence[Feed],
        nodes: Sequence[Node],
        delay_ms: int | None,
    ) -> None:
        settings = SparkSettings.of(config)
        self._session = session or spark_session(settings, quiet)
        self._home = HomePlace.of(config)
        self._max_records = settings.max_records
        self._delay_ms = delay_ms
        streams = [topic for node in nodes if isinstance(node, g.StreamSource) for topic in node.topics]
        tables = [node.topic for node in nodes if isinstance(node, g.TableSource)]
        self.topics = tuple(dict.fromkeys([*streams, *tables]))
        self._frames = {feed.topic: _Fed(feed, feed.of(self._session)) for feed in feeds if feed.topic in self.topics}

    @property
    def is_stream(self) -> bool:
        """Whether any of them goes on."""
        return any(topic not in self._frames or self._frames[topic].rows.isStreaming for topic in self.topics)

    def rows(self, topics: list[str]) -> DataFrame:
        """The records of some topics."""
        fed = self._frames.get(topics[0])
        rows = self._of_topics(topics) if fed is None else frame_source(fed.rows, fed.feed)
        placed = rows.withColumn("origin", origin_column(0, self.topics))
        if self._delay_ms is None:
            return placed
        timed = placed.withColumn(EVENT_TIME, F.timestamp_millis("timestamp"))
        return timed.withWatermark(EVENT_TIME, f"{self._delay_ms} milliseconds")

    def whole(self, topic: str) -> DataFrame:
        """All records that a topic holds when a plan runs."""
        register(self._session)
        return rows_until_now(self._session, self._home, topic)

    def _of_topics(self, topics: list[str]) -> DataFrame:
        register(self._session)
        cut = [Admission(tuple(topics))]
        most = share_of(self._max_records, topics, [topic for topic in self.topics if topic not in self._frames])
        return read_stream(self._session, self._home, topics, most, {}, admissions=cut)
