"""`Lowering`: the topology under construction, to which nodes add sources, processors, sinks and stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kstreams import expressions
from kstreams.dsl.analysis.copartition import repartitions_with_null_keys, topics_behind
from kstreams.dsl.analysis.tables import TableFacts
from kstreams.dsl.analysis.types import TypeOf, Types, naming, required_serde
from kstreams.dsl.analysis.types_of_joins import side_types
from kstreams.dsl.graph import Calls, Function, LogicalGraph, Node
from kstreams.dsl.graph.calls import Retries
from kstreams.dsl.materialized import Materialized
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.kernel.timestamps import FailOnInvalidTimestamp
from kstreams.processor.context.record_functions import ReadingCurrent
from kstreams.processor.context.table_view import TableView
from kstreams.processor.topology.operator import ColumnForm, Operator
from kstreams.processor.topology.topology import ProcessorNode, SinkNode, SourceNode, Topology
from kstreams.serdes import Serde, serde_of
from kstreams.state import store_kinds
from kstreams.state.api import StoreBuilder, StoreKind

if TYPE_CHECKING:
    from kstreams.processor.operators.waiting.retry import RetrySettings


def idle_limits(graph: LogicalGraph, node: Node) -> tuple[int | None, ...]:
    """Return the `idle=` (ms) of the sources before a node, itself included; None for a source without one."""
    idle_times: dict[str, int | None] = {}
    for upstream in graph.upstream(node):
        consumed = getattr(upstream, "consumed", None)
        if consumed is not None:
            idle_times[upstream.name] = consumed.idle_ms
    return tuple(dict.fromkeys(idle_times.values())) or (None,)


class Lowering:
    """The topology under construction, and the facts about its graph.

    Parameters
    ----------
    graph : LogicalGraph
        The graph after all passes.
    types : mapping of str to Types
        The types of every operator's output.
    tables : TableFacts
        The stores and old values of its tables.
    stores : iterable of StoreBuilder
        Stores that the user added.
    default_store : {"rocksdb", "memory"}
        Where tables without a setting are stored.
    """

    def __init__(
        self,
        graph: LogicalGraph,
        types: Mapping[str, Types],
        tables: TableFacts,
        stores: Iterable[StoreBuilder] = (),
        default_store: str = "rocksdb",
    ) -> None:
        self.graph = graph
        self._default_store = default_store
        self.topology = Topology()
        self.topology.graph = graph
        for store in stores:
            self.topology.add_state_store(store)
        self.types = types
        self.tables = tables
        self.with_null_keys = repartitions_with_null_keys(graph)
        self._outputs: dict[str, str] = {}
        self._views: dict[str, TableView] = {}
        self._store_owners: dict[str, Node] = {}
        self._parking_topics: dict[str, Node] = {}

    def apply(self, node: Node, rule: Callable[[Any, Lowering], str]) -> None:
        """Add a node by its rule; its parents were added before."""
        self._current = node
        self._outputs[node.name] = rule(node, self)

    # facts

    def parent(self, node: Node, position: int = 0) -> Node:
        """Return a parent of a node in the graph."""
        return self.graph[node.parents[position]]

    def outputs(self, node: Node) -> tuple[str, ...]:
        """Return the names of the topology nodes that a node reads."""
        return tuple(self._outputs[parent] for parent in node.parents)

    def input_types(self, node: Node, position: int = 0) -> Types:
        """Return the types of the output of a parent."""
        return self.types[node.parents[position]]

    def key_serde(self, node: Node, purpose: str, types: Types | None = None) -> Serde:
        """Return the serde of the keys of a node (or of `types`); an error names what the user can write."""
        return required_serde((types or self.types[node.name]).key, node, "key", purpose)

    def value_serde(self, node: Node, purpose: str, types: Types | None = None) -> Serde:
        """Return the serde of the values of a node (or of `types`); an error names what the user can write."""
        return required_serde((types or self.types[node.name]).value, node, "value", purpose)

    def serdes(self, node: Node, purpose: str, types: Types | None = None) -> dict[str, Any]:
        """Return both serdes of a node (or of `types`), as the keywords `key` and `value`."""
        return {"key": self.key_serde(node, purpose, types), "value": self.value_serde(node, purpose, types)}

    def function(
        self, node: Node, function: Function, arguments: tuple[str, ...], result_type: TypeOf | None = None
    ) -> Callable[..., Any]:
        """Return a function or expression of the user as a Python function of `arguments` (see `as_function`).

        `result_type` is the type of the returned key or value; a `ks.struct` creates an object of this type.
        """
        if not isinstance(function, Expr):
            return function
        types = self.input_types(node)
        result = None if result_type is None else result_type.python
        with naming(node):
            return expressions.as_function(
                function, arguments, key=types.key.python, value=types.value.python, result=result
            )

    def record_function(
        self, node: Node, function: Function, arguments: tuple[str, ...], result: TypeOf | None = None
    ) -> Callable[..., Any]:
        """Return the function for an operator of a stream, in which an expression may read the current record."""
        if not isinstance(function, Expr) or not function.reads_current_record:
            return self.function(node, function, arguments, result)
        return ReadingCurrent(self.function(node, function, (*arguments, "record"), result))

    def pair(
        self, node: Node, pair: tuple[Expr, Expr], arguments: tuple[str, ...]
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Return the expressions for a new key and a new value as Python functions of `arguments`."""
        (key, value) = pair
        types = self.types[node.name]
        return self.function(node, key, arguments, types.key), self.function(node, value, arguments, types.value)

    def record_pair(
        self, node: Node, pair: tuple[Expr, Expr], arguments: tuple[str, ...]
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Return the functions of `pair` for an operator of a stream."""
        (key, value) = pair
        types = self.types[node.name]
        return (
            self.record_function(node, key, arguments, types.key),
            self.record_function(node, value, arguments, types.value),
        )

    def join_function(self, node: Node, joiner: Expr) -> Callable[[Any, Any, Any], Any]:
        """Return an expression that is a joiner as a Python function of key, left and right value."""
        return as_join_function(node, joiner, self.input_types(node), self.input_types(node, 1), self.types[node.name])

    def source(self, node: Node, name: str, topics: Iterable[str], **settings: Any) -> str:
        """Add a source of topics; return its name."""
        settings.setdefault("idle_ms", idle_limits(self.graph, node))
        return self.topology.add(SourceNode(name, tuple(topics), declared_at=node.declared_at, **settings), node.name)

    def processor(
        self,
        node: Node,
        operator: Operator,
        *,
        name: str | None = None,
        parents: tuple[str, ...] | None = None,
        stores: tuple[str, ...] = (),
        columns: ColumnForm | None = None,
    ) -> str:
        """Add a processor, by default with the name and parents of the node; return its name."""
        parents = self.outputs(node) if parents is None else parents
        calls: Calls | None = getattr(node, "calls", None)
        if calls is not None and calls.retries is not None:
            return self._retried_calls(node, operator, calls, calls.retries)
        if calls is not None:
            from kstreams.processor.operators.asynchronous.rows import AsyncOperator  # loads asyncio

            operator = AsyncOperator(operator, calls.concurrency, calls.timeout_ms, calls.ordered)
        return self.topology.add(
            ProcessorNode(name or node.name, parents, operator, stores, columns, node.declared_at), node.name
        )

    def _retried_calls(self, node: Node, operator: Operator, calls: Calls, retries: Retries) -> str:
        """Add a processor whose function is called again after errors."""
        from kstreams.processor.operators.waiting.retry import RetryAsyncOperator, RetryOperator  # loads asyncio

        def retried(settings: RetrySettings) -> Operator:
            if not calls.is_async:
                return RetryOperator(operator, settings)
            return RetryAsyncOperator(operator, settings, calls.concurrency, calls.timeout_ms, calls.ordered)

        return self.retried(node, retries, retried)

    def retried(self, node: Node, retries: Retries, operator_of: Callable[[RetrySettings], Operator]) -> str:
        """Add a processor that lets records wait after errors, and takes back records from its parking topic.

        Parameters
        ----------
        node : Node
        retries : Retries
        operator_of : callable
            Returns the operator, which takes the settings of its waiting records.
        """
        from kstreams.processor.operators.waiting.retry import RetrySettings

        store = self.waiting_records(node)
        parents = self.outputs(node)
        if retries.park is not None:
            parents = (*parents, self.returned_records(node, retries.park, node.name))
        operator = operator_of(RetrySettings(retries.retry, store, retries.park))
        return self.topology.add(
            ProcessorNode(node.name, parents, operator, (store,), None, node.declared_at), node.name
        )

    def waiting_records(self, node: Node) -> str:
        """Add the store of the records that wait in a node; return its name."""
        serdes = self.serdes(node, "to let its records wait", self.input_types(node))
        return self.store(f"{node.name}-waiting", store_kinds.WAITING_RECORDS, Materialized(), **serdes)

    def returned_records(self, node: Node, topic: str, operator_name: str) -> str:
        """Add a reader of a parking topic, which passes on the records that are sent back to a node.

        Parameters
        ----------
        node : Node
        topic : str
            The parking topic.
        operator_name : str
            The name of what parked the records, as their headers have it.
        """
        from kstreams.processor.operators.waiting.retry import ReturnedRecordsOperator

        other = self._parking_topics.setdefault(topic, node)
        if other is not node:
            raise TopologyError(
                f"{node} parks records in topic {topic!r}, as {other} does: give each a topic of its own"
            )
        # Marks follow records that this application has parked, after its first commit; older ones are of a run that
        # was reset.
        source = f"{node.name}-parked"
        raw = {"key": serde_of(bytes), "value": serde_of(bytes)}
        self.source(node, source, (topic,), timestamp_extractor=FailOnInvalidTimestamp(), offset_reset="latest", **raw)
        self.topology.copartition((*topics_behind(self.graph, self.parent(node)), topic))
        serdes = self.serdes(node, "to take records back", self.input_types(node))
        operator = ReturnedRecordsOperator(operator_name, **serdes)
        returned = ProcessorNode(f"{node.name}-returned", (source,), operator, declared_at=node.declared_at)
        return self.topology.add(returned, node.name)

    def sink(self, node: Node, name: str, topic: str | Callable[..., str], **settings: Any) -> str:
        """Add a sink of a topic, by default with the parents of the node; return its name."""
        settings.setdefault("parents", self.outputs(node))
        return self.topology.add(SinkNode(name, topic=topic, declared_at=node.declared_at, **settings), node.name)

    # tables

    def has_store(self, table: Node) -> bool:
        """Return whether a table has a store."""
        return table.name in self.tables.materialized

    def sends_old(self, table: Node) -> bool:
        """Return whether a table sends old values."""
        return table.name in self.tables.sending_old_values

    def is_versioned(self, table: Node) -> bool:
        """Return whether a table is versioned."""
        return table.name in self.tables.versioned

    def store(
        self, name: str, kind: StoreKind, materialized: Materialized, *, is_global: bool = False, **settings: Any
    ) -> str:
        """Add a store with the settings of the user; return its name. A store restored from a topic has no changelog.

        Raises
        ------
        TopologyError
            If another operator has a store of this name.
        """
        owner = self._store_owners.setdefault(name, self._current)
        if owner is not self._current:
            raise TopologyError(f"{self._current} keeps a store {name!r}, as {owner} does: give one another name")
        is_restored_from_topic = is_global or settings.get("source_topic") is not None
        store = StoreBuilder(
            name,
            kind,
            store=materialized.store or self._default_store,
            logging=materialized.logging and not is_restored_from_topic,
            caching=materialized.caching,
            changelog_config=materialized.changelog_config,
            **{"queryable": materialized.queryable, **settings},
        )
        self.topology.add_state_store(store, is_global=is_global)
        return name

    def view_of_parent(self, node: Node, position: int = 0) -> TableView | None:
        """Return the view of a parent that is a table; None if the parent has no rows to look up."""
        return self._views.get(node.parents[position])

    def view_of_table(self, node: Node, position: int = 0) -> TableView:
        """Return the view of a parent whose rows the node looks up."""
        view = self.view_of_parent(node, position)
        if view is None:
            raise TopologyError(f"{node} needs the rows of its table, which is not materialized")
        return view

    def set_view(self, table: Node, view: TableView) -> None:
        """Set the view by which operators look up rows of a table."""
        self._views[table.name] = view


def as_join_function(
    node: Node, joiner: Expr, left: Types, right: Types, result: Types
) -> Callable[[Any, Any, Any], Any]:
    """Return an expression that joins values of two parents as a Python function of key, left and right value."""
    left, right = side_types(node, left, right)
    with naming(node):
        return expressions.as_function(
            joiner,
            ("key", "value", "right"),
            key=left.key.python,
            value=left.value.python,
            right=right.value.python,
            result=result.value.python,
        )
