"""`dataframe_of`: a stream of the DSL as a DataFrame, for the user's own queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kstreams.config import Config
from kstreams.dsl import graph as g
from kstreams.dsl.graph import LogicalGraph, Node
from kstreams.dsl.graph_builder import GraphBuilder
from kstreams.dsl.operator import operators
from kstreams.dsl.passes import source_defaults
from kstreams.errors import TopologyError
from kstreams.processor.topology.feeds import Feed
from kstreams.runtime.spark.cluster.session import quiet, spark_session
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.windowed_query import follows_time, keeps_state
from kstreams.runtime.spark.coupling import Admission
from kstreams.runtime.spark.feeds.frame_source import frame_source
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.io.source import read_stream, register, rows_until_now, share_of
from kstreams.runtime.spark.relational import rules  # noqa: F401 (registers the forms of all operators)
from kstreams.runtime.spark.relational.frame import EVENT_TIME
from kstreams.runtime.spark.relational.header_reads import unreadable_record
from kstreams.runtime.spark.relational.lowering import RelationalLowering
from kstreams.runtime.spark.relational.path_plan import FOLLOWED_BY_TASKS
from kstreams.runtime.spark.relational.programs import only_in_tasks
from kstreams.runtime.spark.relational.states_in_query import delay_of_query, unsupported_in_query
from kstreams.runtime.spark.relational.user_function import origin_column
from kstreams.runtime.spark.settings import SparkSettings, needs_tasks


def dataframe_of(
    builder: GraphBuilder, node: Node, session: SparkSession | None, config: Mapping[str, object] | None
) -> DataFrame:
    """Return the DataFrame of a node; see `KStream.to_dataframe`."""
    settings = Config.of(config)
    full_graph = builder.graph()
    upstream = {parent.name for parent in full_graph.upstream(full_graph[node.name])}
    graph = source_defaults(LogicalGraph(parent for parent in full_graph if parent.name in upstream), settings)
    typed = TypedGraph(graph)
    # The join with a global table reads the topic of the table.
    nodes = tuple(parent for parent in graph if not isinstance(parent, g.GlobalTableSource))
    delay_ms = delay_of_query(nodes, typed) if any(map(follows_time, nodes)) else None
    sources = _Sources(session, settings, builder.feeds, nodes, delay_ms)
    _require_forms(nodes, typed, needs_tasks(settings))
    lowering = RelationalLowering(typed, sources.rows, {}, sources.topics, sources.all_records)
    lowering.run(nodes)
    frame = lowering.frame(_before_repartitions(graph, node).name)
    times = F.timestamp_millis("timestamp").alias("timestamp")
    return frame.rows.select(frame.typed("key").alias("key"), frame.typed("value").alias("value"), times)


def _before_repartitions(graph: LogicalGraph, node: Node) -> Node:
    """Return the node before the final repartitions, which no operator of the DataFrame needs."""
    while isinstance(node, g.Repartition):
        [node] = graph.parents(node)
    return node


def _require_forms(nodes: Sequence[Node], typed: TypedGraph, only_tasks: str | None) -> None:
    """Raise TopologyError if a node has no form as a DataFrame."""
    has_state = any(map(keeps_state, nodes))
    for node in nodes:
        reason = unsupported_reason(node, typed) if only_tasks is None else FOLLOWED_BY_TASKS.format(only_tasks)
        if reason is None and has_state:
            reason = unsupported_in_query(node, nodes, typed)
        if reason is not None:
            raise TopologyError(
                f"{node} cannot be part of a DataFrame: {reason}. Write the stream to a topic, run it by "
                "ks.spark.start, and read run.to_dataframe(topic)."
            )


def unsupported_reason(node: Node, typed: TypedGraph) -> str | None:
    """Return the reason why a node has no form as a DataFrame; None if it has one."""
    form = operators.of(node).spark
    if form.lower is None:
        return form.reason
    reason = only_in_tasks(node, typed) or unreadable_record(node, typed)
    return reason if reason is not None or form.check is None else form.check(node, typed)


class _FeedRows(NamedTuple):
    """The DataFrame of a feed."""

    feed: Feed
    rows: DataFrame


class _Sources:
    """The rows of topics and DataFrames in the columns of a topic, with a watermark if windows need one.

    Parameters
    ----------
    session : SparkSession or None
        None: a session is started by the settings.
    config : Config
    feeds : sequence of Feed
        The DataFrames that are read in place of topics.
    nodes : sequence of Node
        The operators of the DataFrame.
    delay_ms : int or None
        The distance of the watermark to the latest time. None: no operator needs a watermark.
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
        self._home = HomeAddress.of(config)
        self._max_records = settings.max_records
        self._delay_ms = delay_ms
        streams = [topic for node in nodes if isinstance(node, g.StreamSource) for topic in node.topics]
        tables = [node.topic for node in nodes if isinstance(node, g.TableSource)]
        self.topics = tuple(dict.fromkeys([*streams, *tables]))
        self._feeds = {
            feed.topic: _FeedRows(feed, feed.of(self._session)) for feed in feeds if feed.topic in self.topics
        }

    def rows(self, topics: list[str]) -> DataFrame:
        """Return the records of some topics."""
        feed_rows = self._feeds.get(topics[0])
        rows = self._of_topics(topics) if feed_rows is None else frame_source(feed_rows.rows, feed_rows.feed)
        with_origin = rows.withColumn("origin", origin_column(0, self.topics))
        if self._delay_ms is None:
            return with_origin
        with_event_time = with_origin.withColumn(EVENT_TIME, F.timestamp_millis("timestamp"))
        return with_event_time.withWatermark(EVENT_TIME, f"{self._delay_ms} milliseconds")

    def all_records(self, topic: str) -> DataFrame:
        """Return all records that a topic holds when the plan runs."""
        register(self._session)
        return rows_until_now(self._session, self._home, topic)

    def _of_topics(self, topics: list[str]) -> DataFrame:
        register(self._session)
        admissions = [Admission(tuple(topics))]
        max_rows = share_of(self._max_records, topics, [topic for topic in self.topics if topic not in self._feeds])
        return read_stream(self._session, self._home, topics, max_rows, {}, admissions=admissions)
