"""`Sink`: a topic that a program writes, with the text of the keys and values of its records."""

from __future__ import annotations

from typing import NamedTuple

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.runtime.spark.code.rows import Rows, Stream, Window
from kstreams.runtime.spark.code.stateless_rules import unreadable_records
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.unsayable import Unsayable, UnsayableNode
from kstreams.runtime.spark.code.windowed_query import delay_of, follows_time
from kstreams.runtime.spark.code.writing import CodeWriter

_KEYS = {
    None: '"key"',
    Window.TIME: 'F.concat("key", long_bytes(F.unix_millis("window.start"))).alias("key")',
    Window.SESSION: (
        'F.concat("key", long_bytes(F.unix_millis("timestamp")), long_bytes(F.unix_millis("window.start")))'
        '.alias("key")'
    ),
}
"""The keys as Kafka Streams writes them: a window's start, or a session's end and start, behind the key."""


class Sink(NamedTuple):
    """A topic that is written.

    Parameters
    ----------
    node : Node
    rows : Rows
        The rows.
    columns : str
        The key, value and time of the records, as arguments of `select`.
    topic : str
    mode : {"append", "update"}
    has_state : bool
        True if Spark keeps state for the query.
    """

    node: Node
    rows: Rows
    columns: str
    topic: str
    mode: str
    has_state: bool


def delay_of_sink(node: Node, typed: TypedGraph) -> int | None:
    """Return the delay of the watermark of the query that ends at a node; None if no operator follows time."""
    delays = {delay_of(before) for before in typed.graph.upstream(node) if follows_time(before)}
    if len(delays) > 1:
        reason = f"operators before it wait {sorted(delays)} ms for late records, a query waits once"
        raise UnsayableNode(node, reason)
    return next(iter(delays), None)


def sink_of(node: g.To, build: CodeWriter, topic_name: str) -> Sink:
    """Return a sink as text.

    Raises
    ------
    UnsayableNode
        If Spark cannot write the records, or cannot compute them.
    """
    stream = build.stream(node.name)
    try:
        return Sink(node, stream.rows, _columns(node, stream, build), topic_name, stream.mode, stream.has_state)
    except Unsayable as error:
        raise UnsayableNode(node, str(error)) from None


def _columns(node: g.To, stream: Stream, build: CodeWriter) -> str:
    if not isinstance(node.topic, str):
        raise Unsayable("a function chooses the topic")
    if node.partitioner is not None:
        raise Unsayable("a Python function chooses the partition")
    if build.key_serde(node) != stream.key or build.serde(node, "value") != stream.value:
        raise Unsayable("it declares other types than those of its input")
    value = build.codecs.encoded(stream.value, 'F.col("value")', is_checked=stream.is_checked)
    written = '"value"' if value == 'F.col("value")' else f'{value}.alias("value")'
    return f'{_KEYS[stream.window]}, {written}, "timestamp"'


def dead_letters_of(source: Node, build: CodeWriter, topic_name: str) -> Sink:
    """Return the sink that writes the records of a source that cannot be decoded."""
    rows = unreadable_records(source, topics_of(source), build)
    return Sink(source, rows, '"key", "value", "timestamp", "headers"', topic_name, "append", has_state=False)


def topics_of(source: Node) -> tuple[str, ...]:
    """Return the topics that a source reads, by their names in the topology."""
    return source.topics if isinstance(source, g.StreamSource) else (str(getattr(source, "topic", "")),)
