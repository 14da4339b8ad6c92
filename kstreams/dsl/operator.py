"""`OperatorDescriptor`: all that an operator is, found by the type of its node; `register` adds one."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkForm:
    """How an operator runs on Spark: as columns of a DataFrame on the relational path, or in tasks.

    Parameters
    ----------
    lower : callable, optional
        `(node, RelationalLowering) -> Frame`, or None where nothing reads the node. Without it the operator runs in
        tasks only.
    check : callable, optional
        `(node, TypedGraph) -> reason or None`: why the functions and types that this node was given have no columns.
    reason : str
        Why there is no `lower`; shown by `kstreams explain`.
    difference : str, optional
        What of its final results is not exact on the relational path.
    task_difference : str, optional
        What is not exact in tasks, which otherwise answer as the native engine does.
    """

    lower: Callable[[Any, Any], Any] | None = None
    check: Callable[[Any, Any], str | None] | None = None
    reason: str = _NO_FORM
    difference: str | None = None
    task_difference: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorDescriptor:
    """All that an operator is, in one place.

    Parameters
    ----------
    node : type of Node
        What the user said: a frozen dataclass that holds the arguments. Its class variables say what the operator does
        to keys (`keys`, `takes_null_keys`) and values (`changes_values`); fields annotated with `called_with` hold
        functions, and say what these are called with.
    types : callable
        `(node, types of its parents) -> Types`: the types of the keys and values that come out.
    topology : callable
        `(node, Lowering) -> name`: adds the operator (for records and, if it has one, its columnar form), its stores
        and topics to the topology. Returns the name of the topology's node that children read.
    keeping : Keeping, optional
        How a table keeps its rows. None: the operator gives a stream.
    tables : callable, optional
        `(node, TableDemands, parents) -> None`: what the operator needs of the tables that it reads.
    store_named_by : str
        How the user names its store; shown where every store must have a name.
    spark : SparkForm
        How it runs on Spark; in tasks only unless said otherwise.
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
        """Say how an operator of kstreams runs on Spark: the DSL itself does not know that engine."""
        self._descriptors[node_type] = replace(self._descriptors[node_type], spark=form)

    def of(self, node: Node) -> OperatorDescriptor:
        """The descriptor of a node.

        Raises
        ------
        UnsupportedError
            When its type was not registered.
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
"""Every operator there is."""


def register(descriptor: OperatorDescriptor) -> None:
    """Add an operator of your own; `KStream.apply` then takes its node.

    Raises
    ------
    ValueError
        When the type of node is registered already.

    Examples
    --------
    An operator that forwards every record twice:

    >>> from dataclasses import dataclass
    >>> import kstreams as ks
    >>> from kstreams.dsl.analysis.types import unchanged
    >>> from kstreams.processor.context.operator_binding import ClosureOperator
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
