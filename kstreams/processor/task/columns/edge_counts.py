"""`EdgeCounts`: counts what the operators of a region pass to each other, without calling any of them."""

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
    """Where records of a region go from one operator to the next, and those that do."""

    parent: str
    child: str
    view: SourceProjection


class EdgeCounts:
    """Counts the rows of each batch that come through each passage.

    Parameters
    ----------
    passages : iterable of Passage
    counts : ForwardedCounts, optional
        None: nothing is counted.

    Attributes
    ----------
    expressions : list of Expr
        What must be computed for it.
    """

    def __init__(self, passages: Iterable[GraphEdge], counts: ForwardedCounts | None) -> None:
        self._passages = (
            []
            if counts is None
            else [(passage.view.where, counts.adding(passage.parent, passage.child)) for passage in passages]
        )
        self.expressions: list[Expr] = [where for where, _ in self._passages if where is not None]

    def prepare(self, batch: Batch, columns: Columns) -> Callable[[], None]:
        """Look through a batch; the answer counts."""
        counts = [(add, len(SelectedRows(batch, columns, where))) for where, add in self._passages]

        def count() -> None:
            for add, records in counts:
                add(records)

        return count
