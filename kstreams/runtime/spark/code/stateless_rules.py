"""The rules of stateless operators, of topics that are read, and of repartitions, which Spark makes by itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.dsl.operator import Difference, SparkForm
from kstreams.dsl.sugar.explode import Explode
from kstreams.expressions import Expr
from kstreams.processor.topology.feeds import Feed
from kstreams.runtime.spark.code.columns import Term, in_quotes
from kstreams.runtime.spark.code.json_types import field_types, quoted
from kstreams.runtime.spark.code.rows import Rows, Stream
from kstreams.runtime.spark.code.scanning import has_operator, without_parentheses
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.unsayable import Unsayable
from kstreams.runtime.spark.code.user_functions import plain_type
from kstreams.runtime.spark.code.writing import CodeWriter
from kstreams.serdes import BytesSerde, Serde, serde_of

KEY_IS_THERE = '.where(F.col("key").isNotNull())'


def stream_source(node: g.StreamSource, build: CodeWriter) -> Stream:
    """Read topics: each partition with its own watermark if an operator after it follows time."""
    if node.pattern is not None:
        raise Unsayable("it reads the topics that match a pattern")
    if node.consumed.timestamp_extractor is not None:
        raise Unsayable("its timestamp extractor is a Python function")
    if node.consumed.offset_reset not in (None, "earliest"):
        raise Unsayable(f"it begins at {node.consumed.offset_reset!r}")
    feed = build.feeds.get(node.topics[0])
    return _records(node, node.topics, build) if feed is None else rows_of_feed(node, feed, build)


def _records(node: Node, topics: Sequence[str], build: CodeWriter) -> Stream:
    """Return the records of topics, by partition if there are watermarks."""
    skipping = _skipping(node, build)
    if build.delay_ms is None:
        calls = None if skipping is None else (f".transform({skipping})",)
        return decoded(node, f"read({in_quotes(','.join(topics))})", build, calls)
    partitions = ", ".join(f"{in_quotes(topic)}: {build.partitions_of(topic)}" for topic in topics)
    arguments = [f"{{{{{partitions}}}}}", f'"{build.delay_ms} milliseconds"', *filter(None, [skipping])]
    return decoded(node, f"read_by_partition({', '.join(arguments)})", build, None if skipping is None else ())


def _skipping(node: Node, build: CodeWriter) -> str | None:
    """Return the text that leaves out what cannot be decoded; None if that ends the query, or cannot be."""
    if not build.skips_unreadable or build.takes_all_bytes(node):
        return None
    return f"skip_unreadable({in_quotes(node.name)}, {', '.join(build.decoded_sides(node))})"


def unreadable_records(node: Node, topics: Sequence[str], build: CodeWriter) -> Rows:
    """Return the records of a source that cannot be decoded, as they were read."""
    letters = f".transform(dead_letters({', '.join(build.decoded_sides(node))}))"
    return Rows(node, f"read({in_quotes(','.join(topics))})", (), (letters,))


def rows_of_feed(node: g.StreamSource, feed: Feed, build: CodeWriter) -> Stream:
    """Read the rows of a DataFrame as records, with times and Decimals as texts, as the values of topics have them."""
    key = build.serde(node, "key")
    value = build.serde(node, "value")
    delay = "" if build.delay_ms is None else f', "{build.delay_ms} milliseconds"'
    terms = {name: Term(_field_of_row(name, part.ddl)) for name, part in field_types(feed.row).items()}
    typed_key = 'F.lit(None).cast("binary")' if feed.key is None else terms[feed.key].text
    columns = [f'{build.codecs.encoded(key, typed_key, is_checked=True)}.alias("key")']
    columns += [f'{build.struct(terms, value)}.alias("value")', '"timestamp"']
    rows = Rows(node, f"rows_of({in_quotes(feed.topic)}{delay})", (), (f".select({', '.join(columns)})",))
    return Stream(rows, key, value)


def _field_of_row(name: str, ddl: str) -> str:
    return f'F.col({in_quotes(f"row.{quoted(name)}")}).cast("{ddl}")'


def changes_of_table(node: g.TableSource | g.GlobalTableSource, build: CodeWriter) -> Stream:
    """Read a topic as the changes of a table, which has no rows without a key."""
    if node.consumed.timestamp_extractor is not None:
        raise Unsayable("its timestamp extractor is a Python function")
    _require_no_versions(node)
    return _records(node, (node.topic,), build).then(node, KEY_IS_THERE)


def to_table(node: g.ToTable, build: CodeWriter) -> Stream:
    """Take each record as the new row of its key."""
    stream = build.parent(node)
    _require_no_versions(node)
    if build.serde(node, "value") != stream.value or build.key_serde(node) != stream.key:
        raise Unsayable("it declares other types than those of its input")
    return stream.then(node, KEY_IS_THERE)


def _require_no_versions(node: g.TableSource | g.GlobalTableSource | g.ToTable) -> None:
    if node.materialized.history_retention_ms is not None:
        raise Unsayable("it keeps versions of its rows, so that a late record may change none")


def table_filter(node: g.TableFilter, build: CodeWriter) -> Stream:
    """Make a tombstone of each row for which the predicate is not true."""
    return filtered_rows(node, build.parent(node), build)


def filtered_rows(node: g.TableFilter, rows: Stream, build: CodeWriter) -> Stream:
    condition = build.column(node.predicate, rows, node)
    holds = _untrue(condition) if node.negate else in_parentheses(condition)
    kept = f'F.when(F.col("value").isNotNull() & {holds}, F.col("value"))'
    return rows.then(node, f'.withColumn("value", {kept})')


def table_map_values(node: g.TableMapValues, build: CodeWriter) -> Stream:
    """Map the value of each row; a tombstone remains one."""
    return mapped_rows(node, build.parent(node), build)


def mapped_rows(node: g.TableMapValues, rows: Stream, build: CodeWriter) -> Stream:
    value = build.value_column(node.function, rows, node)
    mapped = rows.then(node, f'.withColumn("value", F.when(F.col("value").isNotNull(), {value}))')
    return replace(mapped, value=build.serde(node, "value"), is_checked=False)


def flat_map_values(node: g.FlatMapValues, build: CodeWriter) -> Stream:
    """Make a record of each item of a list."""
    stream = build.parent(node)
    if isinstance(node.function, Explode):
        return _with_items(node, node.function.field, stream, build)
    if isinstance(node.function, Expr):
        items = build.value_column(node.function, stream, node)
    else:
        items = _listed(node, stream, build)
    exploded = stream.then(node, f'.withColumn("value", F.explode({items}))')
    return replace(exploded, value=build.serde(node, "value"), is_checked=False)


def _listed(node: g.FlatMapValues, stream: Stream, build: CodeWriter) -> str:
    """Return the list that a Python function makes of each value."""
    kind = plain_type(build.serde(node, "value").type)
    if kind is None:
        raise Unsayable("its function returns other items than plain values")
    call = build.call(node.function, stream, node, *(("key", "value") if node.with_key else ("value",)))
    return f'python_list({call.function}, "{kind}", {call.arguments})'


def decoded(node: Node, start: str, build: CodeWriter, skipping: tuple[str, ...] | None = None) -> Stream:
    """Return the records of a topic with their values as a typed column.

    Parameters
    ----------
    skipping : tuple of str or None
        The calls that decode values without those that cannot be decoded. None: such a value, or key, ends the query.
    """
    key = build.serde(node, "key")
    value = build.serde(node, "value")
    decoding, *rewriting = build.codecs.decoding(value) or ["{}"]
    later = (f'.withColumn("value", {step.format(_VALUE)})' for step in rewriting)
    calls = _required(decoding, key, build) if skipping is None else skipping
    return Stream(Rows(node, start, (), (*calls, *later)), key, value, is_checked=True)


_VALUE = 'F.col("value")'


def _required(decoding: str, key: Serde, build: CodeWriter) -> tuple[str, ...]:
    """Return the calls that decode values; a key or value that cannot be decoded ends the query."""
    value = '"value"' if decoding == "{}" else f'required({decoding.format(_VALUE)}).alias("value")'
    decoded_key = build.codecs.decoded(key, _KEY)
    has_key = () if decoded_key == _KEY else (f'.where(can_read("key", {decoded_key}) | refusal())',)
    return (*has_key, f'.select("key", {value}, "timestamp")')


_KEY = 'F.col("key")'


def filter_(node: g.Filter, build: CodeWriter) -> Stream:
    stream = build.parent(node)
    if isinstance(node.predicate, Expr):
        condition = build.column(node.predicate, stream, node)
    else:
        call = build.call(node.predicate, stream, node, "key", "value")
        condition = call._replace(function=f"truth_of({call.function})").returning(bool)
    return stream.then(node, f".where({_untrue(condition) if node.negate else condition})")


def _untrue(condition: str) -> str:
    """Return the condition that another one is false or null."""
    return f"~F.coalesce({condition}, F.lit(False))"


def map_values(node: g.MapValues, build: CodeWriter) -> Stream:
    stream = build.parent(node)
    if isinstance(node.function, Expr):
        value = build.value_column(node.function, stream, node)
    else:
        sides = ("key", "value") if node.with_key else ("value",)
        value = build.call(node.function, stream, node, *sides).returning(build.serde(node, "value").type)
    mapped = stream.then(node, f'.withColumn("value", {value})')
    return replace(mapped, value=build.serde(node, "value"), is_checked=False)


def _with_items(node: Node, field: str, stream: Stream, build: CodeWriter) -> Stream:
    """Make a record of each item of a list in a field, with the item in place of the list."""
    value = build.serde(node, "value")
    terms = {name: Term(f"F.col({in_quotes(f'value.{quoted(name)}')})") for name in field_types(value.type)}
    items = f'.withColumn("item", F.explode({terms[field].text}))'
    row = build.struct({**terms, field: Term('F.col("item")')}, value)
    exploded = stream.then(node, items, f'.withColumn("value", {row})', '.drop("item")')
    return replace(exploded, value=value, is_checked=False)


def select_key(node: g.SelectKey, build: CodeWriter) -> Stream:
    stream = build.parent(node)
    key = _new_key(node, node.function, stream, build)
    return _without_window(stream.then(node, f'.withColumn("key", {key})'), node, build)


def map_(node: g.Map, build: CodeWriter) -> Stream:
    stream = build.parent(node)
    if not isinstance(node.function, tuple):
        return _mapped_by_function(node, stream, build)
    new_key, new_value = node.function
    key = _new_key(node, new_key, stream, build)
    value = build.value_column(new_value, stream, node)
    mapped = stream.then(node, f'.withColumns({{"key": {key}, "value": {value}}})')
    return replace(_without_window(mapped, node, build), value=build.serde(node, "value"), is_checked=False)


def _mapped_by_function(node: g.Map, stream: Stream, build: CodeWriter) -> Stream:
    """Map records by a function that returns a key and a value, which are plain."""
    serde = build.serde(node, "key")
    kinds = {side: plain_type(build.serde(node, side).type) for side in ("key", "value")}
    if None in kinds.values():
        raise Unsayable("its function returns other keys or values than plain ones")
    call = build.call(node.function, stream, node, "key", "value")
    pair = f'.withColumn("pair", python_struct({call.function}, {json.dumps(kinds)}, {call.arguments}))'
    key = build.codecs.encoded(serde, 'F.col("pair.key")', is_checked=True)
    both = f'.withColumns({{"key": {key}, "value": F.col("pair.value")}})'
    mapped = stream.then(node, pair, both, '.drop("pair")')
    return replace(mapped, key=serde, value=build.serde(node, "value"), is_checked=False)


def _new_key(node: Node, expr: object, stream: Stream, build: CodeWriter) -> str:
    serde = build.serde(node, "key")
    if not isinstance(expr, Expr):
        column = build.call(expr, stream, node, "key", "value").returning(serde.type)
        return build.codecs.encoded(serde, column, is_checked=True)
    return build.codecs.encoded(serde, in_parentheses(build.column(expr, stream, node)), is_checked=True)


def in_parentheses(column: str) -> str:
    """Return a column of which a method can be called."""
    return f"({column})" if has_operator(column) else column


def _without_window(stream: Stream, node: Node, build: CodeWriter) -> Stream:
    """Return a stream with new keys, which have no windows."""
    key = build.serde(node, "key")
    if stream.window is None:
        return replace(stream, key=key)
    return replace(stream.then(node, '.drop("window")'), key=key, window=None)


def split(node: g.Split, build: CodeWriter) -> Stream:
    return build.parent(node)


def branch(node: g.Branch, build: CodeWriter) -> Stream:
    """Take the records for which no earlier predicate is true."""
    parent = build.typed.graph[node.parents[0]]
    assert isinstance(parent, g.Split)
    stream = build.parent(node)
    position = parent.branches.index(node.name)
    conditions = [build.column(predicate, stream, parent) for predicate in parent.predicates[: position + 1]]
    terms = [*map(_untrue, conditions[:position]), *map(in_parentheses, conditions[position:])]
    return stream.then(node, f".where({without_parentheses(' & '.join(terms))})")


def merge(node: g.Merge, build: CodeWriter) -> Stream:
    streams = [build.parent(node, position) for position in range(len(node.parents))]
    first = streams[0]
    if len(streams) == 1:
        return first
    if any(stream.window is not first.window or stream.mode != first.mode for stream in streams):
        raise Unsayable("it merges results of windows with others")
    if any(stream.value != first.value for stream in streams):
        raise Unsayable("it merges values of different types")
    calls = tuple(f".unionByName({{{position}}})" for position in range(1, len(streams)))
    rows = Rows(node, "{0}" + "".join(calls), tuple(stream.rows for stream in streams))
    has_state = any(stream.has_state for stream in streams)
    return replace(first, rows=rows, is_checked=all(stream.is_checked for stream in streams), has_state=has_state)


def repartition(node: g.Repartition, build: CodeWriter) -> Stream:
    """Pass the records on, as Spark shuffles them where it groups or joins them, without those that have no key.

    What groups or joins them, and needs a repartition therefore, drops these by itself.
    """
    stream = build.parent(node)
    if build.serde(node, "value") != stream.value or build.key_serde(node) != stream.key:
        raise Unsayable("it declares other types than those of its input")
    keeps_all = node.name in build.typed.with_null_keys or not node.explicit
    return stream if keeps_all else stream.then(node, KEY_IS_THERE)


def written(node: g.To, build: CodeWriter) -> Stream:
    """Return the records that a topic gets."""
    return build.parent(node)


def _decodes(node: Node, typed: TypedGraph) -> bool:
    """Return True if the keys or values of a topic are more than bytes."""
    kinds = [side.kind for side in (typed.types[node.name].key, typed.types[node.name].value)]
    return any(kind is None or not isinstance(serde_of(kind), BytesSerde) for kind in kinds)


def _reads_several_topics(node: g.StreamSource, typed: TypedGraph) -> bool:
    return len(node.topics) > 1


def _is_written_in_order(node: Node, typed: TypedGraph) -> bool:
    """Return True if rows of a repartition are read by more than aggregations, for which their order is the same."""
    children = typed.graph.children(node)
    return not children or not all(isinstance(child, g.StreamAggregate | g.WindowedAggregate) for child in children)


DECODING = Difference(
    "decoding",
    "a wrong value that nothing reads is not noticed; a number where the type is text is taken as text; floats "
    "below 1e-3 or from 1e7 on have another JSON text with the same value",
    _decodes,
)

FORMS: dict[type[Node], SparkForm] = {
    g.StreamSource: SparkForm(
        write=stream_source,
        differences=(
            DECODING,
            Difference("order", "the records of its topics are in no particular order", _reads_several_topics),
        ),
    ),
    g.TableSource: SparkForm(write=changes_of_table, differences=(DECODING,)),
    g.GlobalTableSource: SparkForm(
        write=changes_of_table,
        differences=(DECODING,),
        task_difference="it is read to the end of its topic before each step, not as records arrive",
    ),
    g.Filter: SparkForm(write=filter_),
    g.MapValues: SparkForm(write=map_values),
    g.FlatMapValues: SparkForm(write=flat_map_values),
    g.SelectKey: SparkForm(write=select_key),
    g.Map: SparkForm(write=map_),
    g.Split: SparkForm(write=split),
    g.Branch: SparkForm(write=branch),
    g.Merge: SparkForm(
        write=merge,
        differences=(Difference("order", "the records of two branches of one stream are in no particular order"),),
    ),
    g.Repartition: SparkForm(
        write=repartition,
        differences=(
            Difference(
                "order",
                "records of several partitions that come to one are in no particular order",
                _is_written_in_order,
            ),
        ),
    ),
    g.ToTable: SparkForm(write=to_table),
    g.TableFilter: SparkForm(
        write=table_filter,
        differences=(Difference("tombstones", "a row that the filter never let pass has a tombstone too"),),
    ),
    g.TableMapValues: SparkForm(write=table_map_values),
    g.To: SparkForm(write=written, differences=(Difference("headers", "records lose their headers"),)),
}
