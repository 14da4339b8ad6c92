"""Rule of suppress."""

from __future__ import annotations

from kstreams.dsl.analysis.tables import Materialization, TableDemands
from kstreams.dsl.analysis.types import unchanged
from kstreams.dsl.graph import Node, WindowedAggregate
from kstreams.dsl.graph.cogroups import WindowedCogroup
from kstreams.dsl.graph.tables import Suppress
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.errors import TopologyError
from kstreams.processor.operators.suppress import SuppressOperator
from kstreams.state import store_kinds


def suppress(node: Suppress, build: Lowering) -> str:
    if build.is_versioned(build.parent(node)):
        raise TopologyError(
            f"{node} cannot hold back a table with a history: leave history_retention= of {build.parent(node)} out, "
            "or suppress before it"
        )
    suppressed = node.suppressed
    serdes = build.serdes(node, "to hold it back")
    build.store(node.store, store_kinds.TIME_ORDERED_BUFFER, Materialized(), **serdes)
    operator = SuppressOperator(
        node.store,
        wait_ms=_close_delay_ms(node, build) if suppressed.time_limit_ms is None else suppressed.time_limit_ms,
        until_window_closes=suppressed.time_limit_ms is None,
        max_records=suppressed.max_records,
        max_bytes=suppressed.max_bytes,
        emit_early=suppressed.when_full == "emit_early",
    )
    return build.processor(node, operator, stores=(node.store,))


def _close_delay_ms(node: Suppress, build: Lowering) -> int:
    """Return the longest time after its end for which a window before this node takes records."""
    graces = [_grace_ms(upstream) for upstream in build.graph.upstream(node, through=_is_unwindowed)]
    delays = [grace for grace in graces if grace is not None]
    if not delays:
        raise TopologyError(
            f"{node} waits until windows close, but nothing before it has windows: "
            "use Suppressed.until_time_limit, or put windowed_by(...) before the aggregation"
        )
    return max(delays)


def _is_unwindowed(node: Node) -> bool:
    return not isinstance(node, WindowedAggregate | WindowedCogroup)


def _grace_ms(node: Node) -> int | None:
    return node.windows.closes_after_ms if isinstance(node, WindowedAggregate | WindowedCogroup) else None


def old_values(node: Suppress, tables: TableDemands, parents: tuple[Node, ...]) -> None:
    """Demand old values: the buffer stores them with the updates."""
    tables.send_old_values(parents[0], force=True)


OPERATORS = (
    OperatorDescriptor(
        node=Suppress,
        types=unchanged,
        topology=suppress,
        materialization=Materialization.IF_NAMED,
        tables=old_values,
        store_named_by="name= to its Suppressed",
    ),
)
