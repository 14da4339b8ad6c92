"""`EdgeCounts`: counts the records that the operators of a region pass to each other, without calling them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kstreams.expressions import Expr
from kstreams.kernel.batch import Batch
from kstreams.processor.columns.projection import SourceProjection
from kstreams.processor.columns.selected_rows import SelectedRows
from kstreams.processor.columns.source_columns import Columns
from kstreams.processor.context.forwarded import ForwardedCounts


class GraphEdge(NamedTuple):
    """An edge from one operator of a region to the next, and the records that pass it."""

    parent: str
    child: str
    view: SourceProjection


class EdgeCounts:
    """The counters of the rows of each batch that pass each edge.

    Parameters
    ----------
    edges : iterable of GraphEdge
    counts : ForwardedCounts, optional
        None if nothing is counted.

    Attributes
    ----------
    expressions : list of Expr
        The expressions that must be computed for the counts.
    """

    def __init__(self, edges: Iterable[GraphEdge], counts: ForwardedCounts | None) -> None:
        self._edges = (
            [] if counts is None else [(edge.view.where, counts.adding(edge.parent, edge.child)) for edge in edges]
        )
        self.expressions: list[Expr] = [where for where, _ in self._edges if where is not None]

    def prepare(self, batch: Batch, columns: Columns) -> Callable[[], None]:
        """Count the rows of a batch; the returned function adds the numbers to the counters."""
        counts = [(add, len(SelectedRows(batch, columns, where))) for where, add in self._edges]

        def count() -> None:
            for add, records in counts:
                add(records)

        return count
