"""`dataframe_of`: a stream of the DSL as a DataFrame, which the text of a PySpark program computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type

from kstreams.config import Config
from kstreams.dsl.frame_rows import CHANGES
from kstreams.dsl.graph import LogicalGraph, Node
from kstreams.dsl.graph_builder import GraphBuilder
from kstreams.dsl.passes import source_defaults
from kstreams.errors import EngineUnavailableError, TopologyError
from kstreams.processor.topology.feeds import Feed
from kstreams.runtime.spark.cluster.session import quiet, spark_session
from kstreams.runtime.spark.cluster.suitability import is_of_connect
from kstreams.runtime.spark.code.codecs import Codecs
from kstreams.runtime.spark.code.execution import Functions, SinkProgram
from kstreams.runtime.spark.code.program import SESSION, Definitions
from kstreams.runtime.spark.code.rows import Stream, Window
from kstreams.runtime.spark.code.sinks import Sink, delay_of_sink
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.unsayable import Unsayable, UnsayableNode
from kstreams.runtime.spark.code.user_functions import UserFunctions
from kstreams.runtime.spark.code.writing import CodeWriter
from kstreams.runtime.spark.feeds.records import time_of
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.program_queries import settings_of_session
from kstreams.runtime.spark.relational.inputs import ProgramInputs, topic_streams
from kstreams.runtime.spark.relational.path_plan import FOLLOWED_BY_TASKS
from kstreams.runtime.spark.relational.programs import only_in_tasks
from kstreams.runtime.spark.settings import SparkSettings, needs_tasks
from kstreams.serdes import Serde
from kstreams.serdes.arrow_types import arrow_type


def dataframe_of(
    builder: GraphBuilder, node: Node, session: SparkSession | None, config: Mapping[str, object] | None
) -> DataFrame:
    """Return the DataFrame of a node; see `KStream.to_dataframe`."""
    settings = Config.of(config)
    full_graph = builder.graph()
    upstream = {parent.name for parent in full_graph.upstream(full_graph[node.name])}
    graph = source_defaults(LogicalGraph(parent for parent in full_graph if parent.name in upstream), settings)
    topics = _Topics(settings)
    try:
        program = _program_of(graph[node.name], TypedGraph(graph), topics, builder.feeds, settings)
    except UnsayableNode as error:
        raise TopologyError(
            f"{error.node} cannot be part of a DataFrame: {error.reason}. Write the stream to a topic, run it by "
            "ks.spark.start, and read run.to_dataframe(topic)."
        ) from error
    spark = session or spark_session(SparkSettings.of(settings), quiet)
    if is_of_connect(spark):
        _require_settings(spark)
    frames: list[DataFrame] = []
    with settings_of_session(spark, SESSION):
        readers: Functions = {
            **topics.readers(spark, program),
            "rows_of": partial(_rows_of, spark, {feed.topic: feed for feed in builder.feeds}),
        }
        program.execute(spark, readers, lambda rows, mode: frames.append(rows))
    [frame] = frames
    return frame


def _program_of(node: Node, typed: TypedGraph, topics: _Topics, feeds: Iterable[Feed], config: Config) -> SinkProgram:
    """Return the program whose only sink is the DataFrame of a node.

    Raises
    ------
    UnsayableNode
        If the node, or one before it, has no text.
    """
    settings = SparkSettings.of(config)
    letters = None if settings.dead_letter_topic is None else "errors.dead.letter.queue.topic.name"
    only_tasks = needs_tasks(config) or letters
    for before in typed.graph:
        reason = only_in_tasks(before, typed) if only_tasks is None else FOLLOWED_BY_TASKS.format(only_tasks)
        if reason is not None:
            raise UnsayableNode(before, reason)
    codecs = Codecs()
    functions = UserFunctions()
    delay_ms = delay_of_sink(node, typed)
    build = CodeWriter(
        typed,
        codecs,
        topics.partitions,
        delay_ms,
        {feed.topic: feed for feed in feeds},
        skips_unreadable=settings.path.skips_unreadable,
        functions=functions,
    )
    stream = build.stream(node.name)
    try:
        columns = f'{_key(stream, codecs)}.alias("key"), {_typed(stream.value, VALUE)}.alias("value"), "timestamp"'
    except Unsayable as error:
        raise UnsayableNode(node, str(error)) from None
    return SinkProgram(
        Sink(node, stream.rows, columns, node.name, stream.mode, stream.has_state), Definitions(codecs, functions)
    )


VALUE = 'F.col("value")'


def _key(stream: Stream, codecs: Codecs) -> str:
    """Return the text of the typed keys; windowed keys are structs of the key and the bounds of its window."""
    key = _typed(stream.key, codecs.decoded(stream.key, 'F.col("key")'))
    if stream.window is None:
        return key
    end = 'F.col("window.end")' if stream.window is Window.TIME else 'F.col("timestamp")'
    return f'F.struct({key}.alias("key"), F.col("window.start").alias("window_start"), {end}.alias("window_end"))'


def _typed(serde: Serde, column: str) -> str:
    """Return the text of a column with the types of Arrow; a program has times and dates as the texts of JSON."""
    kind = arrow_type(serde.type)
    if kind is None or pa.types.is_null(kind):
        return column
    return f'{column}.cast("{from_arrow_type(kind, prefer_timestamp_ntz=False).simpleString()}")'


def _rows_of(session: SparkSession, feeds: Mapping[str, Feed], topic: str, delay: str | None = None) -> DataFrame:
    """Return the rows of a DataFrame with their times, and a watermark if there is a delay.

    Raises
    ------
    TopologyError
        If the DataFrame is a change data feed, whose rows have an order.
    """
    feed = feeds[topic]
    rows = feed.of(session)
    if set(CHANGES) <= set(rows.columns):
        raise TopologyError(
            f"{feed} reads a change data feed, whose changes have an order that a DataFrame does not keep: run it by "
            "ks.spark.start"
        )
    time = (
        F.current_timestamp() if feed.timestamp is None else F.timestamp_millis(time_of(rows, feed.timestamp))
    ).alias("timestamp")
    timed = rows.select(F.struct(*(F.col(f"`{name}`") for name in rows.columns)).alias("row"), time)
    return timed if delay is None else timed.withWatermark("timestamp", delay)


class _Topics:
    """The topics of a home, which are read from their beginning.

    Parameters
    ----------
    config : Config
    """

    def __init__(self, config: Config) -> None:
        self._config = config

    def partitions(self, topic: str) -> int | None:
        """Return the number of partitions of a topic; None if there is no such topic."""
        with HomeAddress.of(self._config).opened() as log, log.admin() as admin:
            description = admin.topics([topic]).get(topic)
        return None if description is None else description.partitions

    def readers(self, session: SparkSession, program: SinkProgram) -> Functions:
        """Return the functions that read topics."""
        max_records = program.share_of(SparkSettings.of(self._config).max_records)
        counts = {topic: self.partitions(topic) or 1 for topic in program.streamed_topics}
        streams = topic_streams(session, self._config, counts, {}, max_records)
        return ProgramInputs(streams, {}, None, observes_times=False).functions


def _require_settings(session: SparkSession) -> None:
    """Raise EngineUnavailableError unless a session of Spark Connect, which plans DataFrames as they run, is in UTC."""
    zone = session.conf.get("spark.sql.session.timeZone")
    if zone not in _UTC:
        raise EngineUnavailableError(
            f"The session of Spark Connect has the time zone {zone}, in which times would have other hours and days: "
            'call spark.conf.set("spark.sql.session.timeZone", "UTC") first.'
        )


_UTC = ("UTC", "Etc/UTC", "GMT", "Z")
