"""`program_of`: the text of a PySpark program that computes what a topology writes to topics of Kafka."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kstreams.config import Config
from kstreams.dsl import graph as g
from kstreams.dsl.graph import LogicalGraph
from kstreams.errors import TopologyError
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.spark.cluster.jars import SPARK_VERSION
from kstreams.runtime.spark.code.codecs import Codecs, NamedType
from kstreams.runtime.spark.code.columns import in_quotes
from kstreams.runtime.spark.code.forms import differences_of
from kstreams.runtime.spark.code.functions_of_programs import SOURCES, used_by
from kstreams.runtime.spark.code.kafka_options import IN_TEXT, kafka_options
from kstreams.runtime.spark.code.layout import WIDTH, Layout, streamed_sources
from kstreams.runtime.spark.code.rows import Rows
from kstreams.runtime.spark.code.scanning import lines_of
from kstreams.runtime.spark.code.sinks import Sink, dead_letters_of, delay_of_sink, sink_of
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.unsayable import UnsayableNode
from kstreams.runtime.spark.code.user_functions import UserFunctions
from kstreams.runtime.spark.code.writing import CodeWriter
from kstreams.runtime.spark.settings import SparkSettings, needs_tasks

_OF_SINK = (
    "Spark's sink for Kafka writes at least once, and gives records the time at which it writes them.",
    "Records lose their headers.",
    "Spark decodes what is read: a wrong value that nothing reads is not noticed, unless wrong ones are skipped.",
    "JSON: floats below 1e-3 or from 1e7 on, and control characters, have another text with the same value; a number "
    "where the type is text is taken as text; a Decimal that is a number loses zeros at its end; an integer of more "
    "than 64 bits, a Decimal with an exponent, a sign + or zeros before it, and a datetime with more than six digits "
    "of a second cannot be read.",
)


_NAMES_OF_SINK = ("decoding", "headers")
"""The differences that `_OF_SINK` describes for all topics."""


def program_of(topology: Topology, config: Config, partitions: Callable[[str], int | None]) -> str:
    """Return the text of a program.

    What cannot be written as PySpark is left out: the text says which topics, and why.

    Parameters
    ----------
    topology : Topology
    config : Config
    partitions : callable
        Returns the number of partitions of a topic; None if there is no such topic.

    Raises
    ------
    TopologyError
        If nothing of the topology can be written as PySpark; the message has the reasons.
    """
    typed = TypedGraph(_graph(topology, config))
    connected = _connected_topics(topology)
    codecs = Codecs()
    functions = UserFunctions()
    settings = SparkSettings.of(config)
    sinks: list[Sink] = []
    refusals: list[str] = []
    writers: dict[int | None, CodeWriter] = {}
    for node in typed.graph:
        if not isinstance(node, g.To):
            continue
        try:
            _require_plain_topics(node, typed, connected)
            delay_ms = delay_of_sink(node, typed)
            new = CodeWriter(
                typed,
                codecs,
                partitions,
                delay_ms,
                skips_unreadable=settings.path.skips_unreadable,
                functions=functions,
            )
            build = writers.setdefault(delay_ms, new)
            sinks.append(sink_of(node, build, _written_topic(node, typed, settings)))
        except UnsayableNode as error:
            refusals.append(str(error))
    if not sinks:
        reasons = "; ".join(dict.fromkeys(refusals)) or "it writes no topic"
        raise TopologyError(f"nothing of this topology can be written as PySpark: {reasons}")
    differences = _differences(typed, sinks)
    if settings.dead_letter_topic is not None:
        topic = f"{settings.prefix}{settings.dead_letter_topic}"
        build = CodeWriter(typed, codecs, partitions, None, skips_unreadable=True)
        sinks += [dead_letters_of(source, build, topic) for source in streamed_sources(sinks)]
    definitions = Definitions(codecs, functions)
    return _text(config, settings, definitions, _Contents(sinks, differences, list(dict.fromkeys(refusals))))


def _written_topic(node: g.To, typed: TypedGraph, settings: SparkSettings) -> str:
    """Return the name of a topic in Kafka: with the prefix, unless the topology reads it too."""
    read = {topic for source in typed.graph if isinstance(source, g.StreamSource) for topic in source.topics}
    return str(node.topic) if node.topic in read else f"{settings.prefix}{node.topic}"


def _connected_topics(topology: Topology) -> dict[str, str]:
    """Return the topics that only kstreams fills or reads, and the reason why a program cannot use them."""
    filled = [source.topic for source in topology.connector_sources] + [feed.topic for feed in topology.feeds]
    reasons = dict.fromkeys(filled, "its topic is filled by kstreams, from a source or a DataFrame")
    return reasons | {sink.topic: "a sink of kstreams takes its records" for sink in topology.connector_sinks}


def _require_plain_topics(node: g.To, typed: TypedGraph, connected: Mapping[str, str]) -> None:
    """Raise UnsayableNode if a topic that is written, or one that is read for it, belongs to kstreams."""
    if node.topic in connected:
        raise UnsayableNode(node, connected[str(node.topic)])
    for source in typed.graph.upstream(node):
        topics = source.topics if isinstance(source, g.StreamSource) else (getattr(source, "topic", None),)
        reason = next((connected[str(topic)] for topic in topics if topic in connected), None)
        if reason is not None and source is not node:
            raise UnsayableNode(source, reason)


def _graph(topology: Topology, config: Config) -> LogicalGraph:
    graph: LogicalGraph | None = topology.graph
    if graph is None:
        raise TopologyError("a topology put together by hand has processors only: PySpark has no form for them")
    setting = needs_tasks(config)
    if setting is not None:
        raise TopologyError(f"{setting} is set: only tasks can follow it, and a PySpark program has none")
    return graph


class _Contents(NamedTuple):
    """What a program consists of.

    Parameters
    ----------
    sinks : sequence of Sink
    differences : sequence of str
        How the results of the operators may differ.
    refusals : sequence of str
        What is left out, and why.
    """

    sinks: Sequence[Sink]
    differences: Sequence[str]
    refusals: Sequence[str]


def _text(config: Config, settings: SparkSettings, definitions: Definitions, contents: _Contents) -> str:
    body = body_of(contents.sinks, definitions)
    helpers = [SOURCES[name] for name in body.helpers]
    constants = [helper for helper in helpers if not helper.startswith("def ")]
    functions = [helper for helper in helpers if helper.startswith("def ")]
    parts = [
        _title(config, contents),
        _imports("\n".join([*_constants(config, settings), *helpers, body.types, body.functions, body.statements])),
        "\n".join([*_constants(config, settings), *constants]),
        _SESSION,
        *(f"\n{part}" for part in [*functions, body.types, body.functions] if part),
        f"\n{body.statements}",
        "if not ONCE:\n    spark.streams.awaitAnyTermination()",
    ]
    return "\n\n".join(parts) + "\n"


class Definitions(NamedTuple):
    """What the statements of a program name: the types of JSON, and the functions of the user."""

    codecs: Codecs
    functions: UserFunctions


class Body(NamedTuple):
    """What a program does, whoever reads and writes its topics.

    Parameters
    ----------
    helpers : list of str
        The names of the functions and constants of `SOURCES` that it uses.
    types : str
        The types of JSON, and the functions that check their values.
    functions : str
        The functions of the user, with what they need.
    statements : str
        The DataFrames and the queries that write them.
    """

    helpers: list[str]
    types: str
    functions: str
    statements: str


def body_of(sinks: Sequence[Sink], definitions: Definitions) -> Body:
    """Return the statements of a program, with all that they need.

    Raises
    ------
    TopologyError
        If a function of the user has the name of one of the program.
    """
    users = definitions.functions.definitions
    if taken := sorted(users.keys() & {*SOURCES, *_RESERVED}):
        raise TopologyError(
            f"a PySpark program has something called {taken[0]} itself: give your function another name"
        )
    statements = "\n\n".join(Layout(sinks, [*SOURCES, *_RESERVED, *users]).statements)
    types = _types(definitions.codecs, statements)
    return Body(used_by(f"{statements}\n{types}"), types, "\n\n\n".join(users.values()), statements)


IMPORTS = {
    "accumulate(": "from itertools import accumulate",
    "namedtuple(": "from collections import namedtuple",
    "reduce(": "from functools import reduce",
    "{Path(": "from pathlib import Path",
}
"""What programs import of the standard library, by the text that needs it."""

_RESERVED = {"F", "spark", "json", "os", "sys", "pa", "Column", "DataFrame", "SparkSession", "Callable", "Sequence"}
_RESERVED |= {"Path", "reduce", "accumulate", "namedtuple"}


def _title(config: Config, contents: _Contents) -> str:
    """Return the docstring of the program."""
    kafka = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_VERSION}"
    differences = [*_OF_SINK, *contents.differences]
    lines = [
        f'"""{config.application_id} as a PySpark program; `kstreams explain --engine spark --code` has written it.',
        "",
        "It goes on until it is stopped; with --once, until it has read what the topics hold now:",
        "",
        f"    spark-submit --packages {kafka} program.py [--once]",
        "",
        *_listed("Its results are those of kstreams, except for these differences:", differences),
    ]
    if contents.refusals:
        lines += ["", *_listed("It leaves out what PySpark cannot say with the same results:", contents.refusals)]
    return "\n".join(lines).replace("\\", "\\\\") + '\n"""'


def _differences(typed: TypedGraph, sinks: Sequence[Sink]) -> list[str]:
    """Return the differences with the operators that have them. Those of all sources and sinks are in `_OF_SINK`."""
    names = {node.name for sink in sinks for node in typed.graph.upstream(sink.node)}
    places: dict[str, list[str]] = {}
    for node in (node for node in typed.graph if node.name in names):
        for difference in differences_of(node, typed):
            if difference.name not in _NAMES_OF_SINK:
                places.setdefault(difference.description, []).append(Rows(node, "").comment)
    return [f"{'; '.join(operators)}: {description}" for description, operators in places.items()]


def _listed(title: str, points: Sequence[str]) -> list[str]:
    lines = [title]
    for point in points:
        lines += textwrap.wrap(point, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
    return lines


def _imports(text: str) -> str:
    """Return the imports that a text needs."""
    standard = [f"import {name}" for name in ("json", "os", "sys") if re.search(rf"\b{name}\.", text)]
    kinds = [name for name in ("Callable", "Sequence") if re.search(rf"\b{name}\b", text)]
    standard += [f"from collections.abc import {', '.join(kinds)}"] if kinds else []
    standard += [statement for part, statement in IMPORTS.items() if part in text]
    names = [name for name in ("Column", "DataFrame") if name in text]
    arrow = ["import pyarrow as pa"] if re.search(r"\bpa\.", text) else []
    spark = [f"from pyspark.sql import {', '.join([*names, 'SparkSession'])}"]
    standard.sort(key=lambda statement: (statement.startswith("from"), statement))
    return "\n".join([*standard, "", *arrow, *spark, "from pyspark.sql import functions as F"])


def _constants(config: Config, settings: SparkSettings) -> list[str]:
    values = kafka_options(config, IN_TEXT).items()
    options = "\n".join(f"    {in_quotes(name)}: {_option(value)}," for name, value in values)
    checkpoint = f"{settings.checkpoint_of(config.application_id)}-code"
    return [
        f"KAFKA = {{\n{options}\n}}",
        'READ = {**KAFKA, "startingOffsets": "earliest", "kafka.isolation.level": "read_committed"}',
        f"BATCH = {settings.max_records}  # the most records of a batch",
        f"CHECKPOINT = {in_quotes(checkpoint)}",
        'ONCE = "--once" in sys.argv',
    ]


def _option(value: str) -> str:
    return f"f'{value}'" if "{os.environ" in value or "{Path(" in value else in_quotes(value)


SESSION = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition": "true",
}
"""The settings of the session in which a program runs."""

_SESSION = "\n".join(
    [
        "spark = SparkSession.builder.getOrCreate()",
        *(f'spark.conf.set("{name}", "{SESSION[name]}")' for name in SESSION),
    ]
)


def _types(codecs: Codecs, body: str) -> str:
    """Return the types of JSON that a text names, and the functions that check their values."""
    texts = []
    for named in codecs.types:
        if f"{named.name}" not in body and (named.predicate or "nothing") not in body:
            continue
        texts.append(_schema(named))
        if named.predicate is not None:
            texts.append(f"\n\n{_predicate(named)}\n\n")
        if named.of_values.normal is not None:
            texts.append(f"\n\n{_rewriting(named, named.of_values.normal)}\n\n")
    return "\n".join(texts).strip("\n")


def _predicate(named: NamedType) -> str:
    """Return the function that tells whether a value has the fields that its type needs."""
    holds = " & ".join(named.of_values.conditions("value"))
    result = [f"return {holds}"] if len(holds) < WIDTH - 11 else lines_of(f"return ({holds})", WIDTH - 4)
    lines = [f'"""Whether the fields are there that {named.name} needs."""', *result]
    return "\n    ".join([f"def {named.predicate}(value: Column) -> Column:", *lines])


def _rewriting(named: NamedType, normal: Callable[[str], str]) -> str:
    """Return the function that gives the texts of a value their normal notation."""
    lines = [
        '"""The value with datetimes as msgspec writes them."""',
        *lines_of(f"return {normal('value')}", WIDTH - 4),
    ]
    return "\n    ".join([f"def {named.rewriting}(value: Column) -> Column:", *lines])


def _schema(named: NamedType) -> str:
    """Return the statement that defines a type, over several lines if it is long."""
    ddl = named.of_values.ddl
    if len(named.name) + len(ddl) < WIDTH - 5:
        return f"{named.name} = {in_quotes(ddl)}"
    lines = textwrap.wrap(ddl, WIDTH - 6, break_long_words=False, break_on_hyphens=False)
    texts = [in_quotes(f"{line} ") for line in lines[:-1]]
    return "\n    ".join([f"{named.name} = (", *texts, in_quotes(lines[-1])]) + "\n)"
