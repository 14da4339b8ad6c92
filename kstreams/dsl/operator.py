"""`OperatorDescriptor`: the description of an operator, by the type of its node; `register` adds one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kstreams.dsl.analysis.tables import Materialization, TableRule
from kstreams.dsl.analysis.types import Types
from kstreams.dsl.graph import Node
from kstreams.dsl.lowering import Lowering
from kstreams.errors import UnsupportedError

TypeRule = Callable[[Any, tuple[Types, ...]], Types]
TopologyRule = Callable[[Any, Lowering], str]

_NO_FORM = "it has no form there"


def _always(node: Node, typed: object) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between the results of a PySpark program and those of the native engine.

    Parameters
    ----------
    name : str
        The name by which `spark.kstreams.accept` takes it.
    description : str
        What differs.
    applies : callable
        `(node, TypedGraph) -> bool`: whether a node has it. By default every node has it.
    """

    name: str
    description: str
    applies: Callable[[Any, Any], bool] = _always


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkForm:
    """How an operator runs on Spark: as a part of a PySpark program, or in tasks.

    Parameters
    ----------
    write : callable, optional
        `(node, CodeWriter) -> Stream`: the rule that writes the operator as PySpark. Raises Unsayable with the reason
        if PySpark has no equal form for the node's functions or types. Without a rule it runs in tasks only.
    differences : tuple of Difference
        How the results of what `write` writes differ from those of the native engine.
    reason : str
        Why there is no `write`; shown by `kstreams explain`.
    task_difference : str, optional
        How its results in Spark tasks differ from those of the native engine.
    """

    write: Callable[[Any, Any], Any] | None = None
    differences: tuple[Difference, ...] = ()
    reason: str = _NO_FORM
    task_difference: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorDescriptor:
    """The description of an operator: its node, its rules, and its form on Spark.

    Parameters
    ----------
    node : type of Node
        A frozen dataclass that holds the user's arguments. Its class variables declare what the operator does to keys
        (`keys`, `takes_null_keys`) and to values (`changes_values`). Fields annotated with `called_with` hold the
        user's functions; the annotation lists the arguments of the call.
    types : callable
        `(node, types of its parents) -> Types`: the types of the keys and values of its output.
    topology : callable
        `(node, Lowering) -> name`: adds the operator (for records and, if it has one, its columnar form), its stores
        and topics to the topology. Returns the name of the topology node that its children read.
    materialization : Materialization, optional
        When a table stores its rows. None if the operator returns a stream.
    tables : callable, optional
        `(node, TableDemands, parents) -> None`: the rule that demands stores or old values of the tables it reads.
    store_named_by : str
        The argument by which the user names the store, shown in the error about a store without a name.
    spark : SparkForm
        Its form on Spark. By default the operator runs in tasks only.
    """

    node: type[Node]
    types: TypeRule
    topology: TopologyRule
    materialization: Materialization | None = None
    tables: TableRule | None = None
    store_named_by: str = "materialized="
    spark: SparkForm = SparkForm()


class OperatorRegistry:
    """The descriptors, by the type of their node."""

    def __init__(self) -> None:
        self._descriptors: dict[type[Node], OperatorDescriptor] = {}

    def __contains__(self, node_type: object) -> bool:
        return node_type in self._descriptors

    @property
    def node_types(self) -> list[type[Node]]:
        """All types of nodes, by name."""
        return sorted(self._descriptors, key=lambda node_type: node_type.__name__)

    def add(self, descriptor: OperatorDescriptor) -> None:
        """Add an operator; ValueError when there is one of this type of node."""
        if descriptor.node in self:
            raise ValueError(f"{descriptor.node.__name__} is registered already")
        self._descriptors[descriptor.node] = descriptor

    def set_spark(self, node_type: type[Node], form: SparkForm) -> None:
        """Set the form on Spark of an operator of kstreams, since the DSL does not import that engine."""
        self._descriptors[node_type] = replace(self._descriptors[node_type], spark=form)

    def of(self, node: Node) -> OperatorDescriptor:
        """The descriptor of a node.

        Raises
        ------
        UnsupportedError
            If its type is not registered.
        """
        if type(node) not in self:
            raise UnsupportedError(
                f"{node or type(node).__name__} is a {type(node).__name__}, which is no registered operator: call "
                "kstreams.dsl.operator.register(OperatorDescriptor(...)) first"
            )
        return self._descriptors[type(node)]

    def of_type(self, node_type: type[Node]) -> OperatorDescriptor:
        """The descriptor of a type of nodes."""
        return self._descriptors[node_type]


operators = OperatorRegistry()
"""The registered operators."""


def register(descriptor: OperatorDescriptor) -> None:
    """Add an operator of your own; `KStream.apply` then takes its node.

    Raises
    ------
    ValueError
        If the type of node is registered already.

    Examples
    --------
    An operator that forwards every record twice:

    >>> from dataclasses import dataclass
    >>> import kstreams as ks
    >>> from kstreams.dsl.analysis.types import unchanged
    >>> from kstreams.processor.context.operator_context import ClosureOperator
    >>> @dataclass(frozen=True, slots=True, eq=False, kw_only=True)
    ... class Twice(Node):
    ...     pass
    >>> class TwiceOperator(ClosureOperator):
    ...     def bind(self, context, forward):
    ...         def process(key, value, timestamp):
    ...             forward(key, value, timestamp)
    ...             forward(key, value, timestamp)
    ...
    ...         return process
    >>> def twice(node, build):
    ...     return build.processor(node, TwiceOperator())
    >>> register(OperatorDescriptor(node=Twice, types=unchanged, topology=twice))
    >>> builder = ks.StreamsBuilder()
    >>> builder.stream("words", key=str, value=str).apply(Twice()).to("doubled-words")
    """
    operators.add(descriptor)
