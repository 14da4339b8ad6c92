"""`CodeWriter`: gives the rules of operators the streams of their parents, texts of expressions, and serdes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from kstreams.dsl.graph import Node
from kstreams.dsl.operator import operators
from kstreams.expressions import Expr, Operation, Schema, gives_struct
from kstreams.processor.topology.feeds import Feed
from kstreams.runtime.spark.code.codecs import Codecs
from kstreams.runtime.spark.code.columns import Leaf, Term, column_of, in_quotes, stored_term, struct_text
from kstreams.runtime.spark.code.json_types import field_types, quoted
from kstreams.runtime.spark.code.rows import Stream, Window
from kstreams.runtime.spark.code.scanning import without_parentheses
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.unsayable import Unsayable, UnsayableNode
from kstreams.runtime.spark.code.user_functions import (
    Argument,
    UserFunctions,
    arguments_of,
    plain_type,
    result_fields,
)
from kstreams.serdes import Serde, WindowedSerde, serde_of


class Call(NamedTuple):
    """The call of a Python function, as texts of the function and of its arguments."""

    function: str
    arguments: str

    def returning(self, kind: object) -> str:
        """Return the column of its results, which have a plain type or are objects of a class."""
        plain = plain_type(kind)
        if plain is not None:
            return f'python({self.function}, "{plain}", {self.arguments})'
        return f"python_struct({self.function}, {json.dumps(result_fields(kind))}, {self.arguments})"


def _argument(side: str, argument: Argument, column: str) -> str:
    if argument.fields is None:
        return column
    names = "".join(f", {in_quotes(name)}" for name in argument.fields)
    return f'fields("{side}"{names})' if names else "F.lit(None)"


class CodeWriter:
    """The conversion of a graph to the DataFrames of a PySpark program.

    Parameters
    ----------
    typed : TypedGraph
    codecs : Codecs
    partitions : callable
        Returns the number of partitions of a topic; None if there is no such topic.
    delay_ms : int or None
        The delay of the watermarks; None if no operator follows time.
    feeds : mapping of str to Feed
        The DataFrames that are read in place of topics.
    skips_unreadable : bool
        True if records that cannot be decoded are left out; else they end the query.
    functions : UserFunctions, optional
        Where the functions of the user are defined.
    """

    def __init__(
        self,
        typed: TypedGraph,
        codecs: Codecs,
        partitions: Callable[[str], int | None],
        delay_ms: int | None,
        feeds: Mapping[str, Feed] | None = None,
        *,
        skips_unreadable: bool,
        functions: UserFunctions | None = None,
    ) -> None:
        self.typed = typed
        self.codecs = codecs
        self.delay_ms = delay_ms
        self.feeds = feeds or {}
        self.skips_unreadable = skips_unreadable
        self.functions = UserFunctions() if functions is None else functions
        self._partitions = partitions
        self._streams: dict[str, Stream | UnsayableNode] = {}

    def stream(self, name: str) -> Stream:
        """Return the stream of a node.

        Raises
        ------
        UnsayableNode
            If the node, or one before it, cannot be written.
        """
        if name not in self._streams:
            self._streams[name] = self._written(self.typed.graph[name])
        stream = self._streams[name]
        if isinstance(stream, UnsayableNode):
            raise stream
        return stream

    def parent(self, node: Node, position: int = 0) -> Stream:
        """Return the stream of a parent of a node."""
        return self.stream(node.parents[position])

    def _written(self, node: Node) -> Stream | UnsayableNode:
        form = operators.of(node).spark
        for parent in node.parents:
            try:
                self.stream(parent)
            except UnsayableNode as error:
                return error
        if form.write is None:
            return UnsayableNode(node, form.reason)
        try:
            stream: Stream = form.write(node, self)
            return stream
        except Unsayable as error:
            return UnsayableNode(node, str(error))

    def serde(self, node: Node, side: str) -> Serde:
        """Return the serde of a node's keys or values."""
        kind = getattr(self.typed.types[node.name], side).kind
        if kind is None:
            raise Unsayable(f"the type of its {side} is not known")
        return serde_of(kind)

    def decoded_sides(self, node: Node) -> tuple[str, str]:
        """Return the texts that decode the key and the value of a source; null stands for what cannot be decoded."""
        decoding, *_ = self.codecs.decoding(self.serde(node, "value")) or ["{}"]
        return self.codecs.decoded(self.serde(node, "key"), 'F.col("key")'), decoding.format('F.col("value")')

    def takes_all_bytes(self, node: Node) -> bool:
        """Return True if every key and value of a source can be decoded."""
        return self.decoded_sides(node) == ('F.col("key")', 'F.col("value")')

    def key_serde(self, node: Node) -> Serde:
        """Return the serde of a node's keys; of windowed keys, that of the keys without their windows."""
        serde = self.serde(node, "key")
        return serde.inner if isinstance(serde, WindowedSerde) else serde

    def partitions_of(self, topic: str) -> int:
        """Return the number of partitions of a topic, each of which has a watermark."""
        partitions = self._partitions(topic)
        if partitions is None:
            raise Unsayable(f"each partition of {topic!r} needs a watermark, but there is no such topic: create it")
        return partitions

    def column(self, expr: object, stream: Stream, node: Node, values: Mapping[Operation, str] | None = None) -> str:
        """Return the text of an expression over the rows of a stream.

        `values` names the columns that hold the values, by the operation that reads the whole value.
        """
        if not isinstance(expr, Expr):
            raise Unsayable("it calls a Python function")
        return column_of(expr, self.leaf(stream, values), self.schema(node))

    def value_column(
        self, expr: object, stream: Stream, node: Node, values: Mapping[Operation, str] | None = None
    ) -> str:
        """Return the text of an expression whose result has the type of a node's values; a struct has its fields."""
        if not isinstance(expr, Expr):
            raise Unsayable("it calls a Python function")
        if expr.operation is not Operation.STRUCT:
            if gives_struct(expr):
                raise Unsayable("it chooses between structs")
            return without_parentheses(stored_term(expr, self.leaf(stream, values), self.schema(node)).column)
        leaf = self.leaf(stream, values)
        schema = self.schema(node)
        terms = {name: stored_term(part, leaf, schema) for name, part in zip(expr.detail, expr.inputs, strict=True)}
        return self.struct(terms, self.serde(node, "value"))

    def call(self, function: object, stream: Stream, node: Node, *sides: str) -> Call:
        """Return the call of a Python function with the key, the value or both of each record."""
        if stream.window is not None:
            raise Unsayable("its function takes keys that have windows")
        types = self.typed.of_parent(node)
        kinds = {side: getattr(types, side).python for side in sides}
        arguments = arguments_of(function, kinds)
        columns = {"key": self.codecs.decoded(stream.key, 'F.col("key")'), "value": 'F.col("value")'}
        texts = [_argument(side, argument, columns[side]) for side, argument in zip(kinds, arguments, strict=True)]
        return Call(self.functions.text_of(function), ", ".join(texts))

    def struct(self, terms: Mapping[str, Term], serde: Serde) -> str:
        """Return the text of a struct with the fields of a type; a field without a term is null."""
        absent = {name: Term(f'F.lit(None).cast("{part.ddl}")') for name, part in field_types(serde.type).items()}
        return struct_text({name: terms.get(name, null) for name, null in absent.items()})

    def schema(self, node: Node) -> Schema:
        """Return the types of the records that the expressions of a node read."""
        types = self.typed.of_parent(node)
        grouped = getattr(node, "grouped", None)
        key = types.key if grouped is None else types.key.or_declared(grouped.key, node)
        value = types.value if grouped is None else types.value.or_declared(grouped.value, node)
        right = self.typed.of_parent(node, 1).value.python if len(node.parents) > 1 else None
        return Schema(key.python, value.python, right)

    def leaf(self, stream: Stream, values: Mapping[Operation, str] | None = None) -> Leaf:
        """Return the function that gives the text of a part of a record."""
        names = {Operation.VALUE: "value", Operation.FIELD: "value", **(values or {})}

        def text(expr: Expr) -> str:
            if expr.operation in (Operation.FIELD, Operation.RIGHT_FIELD) and expr.operation in names:
                return f"F.col({in_quotes(f'{names[expr.operation]}.{quoted(expr.detail)}')})"
            if expr.operation in names:
                return f"F.col({in_quotes(names[expr.operation])})"
            return self._part_of_record(expr, stream)

        return text

    def _part_of_record(self, expr: Expr, stream: Stream) -> str:
        if expr.operation is Operation.KEY:
            return self.codecs.decoded(stream.key, 'F.col("key")')
        if expr.operation is Operation.TIMESTAMP:
            return 'F.unix_millis("timestamp")'
        if expr.operation is Operation.WINDOW_START and stream.window is not None:
            return 'F.unix_millis("window.start")'
        if expr.operation is Operation.WINDOW_END and stream.window is not None:
            return 'F.unix_millis("window.end")' if stream.window is Window.TIME else 'F.unix_millis("timestamp")'
        raise Unsayable(f"{expr!r} is read from the record that a task processes")

    def require_no_state(self, node: Node, *streams: Stream) -> None:
        """Raise Unsayable if Spark already keeps state for an operator before a node."""
        if any(stream.has_state for stream in streams):
            raise Unsayable("Spark keeps one state in a query: write what comes before it to a topic, and read that")
