"""`ExitTarget`: where a region ends before a step that takes records one by one: what comes through goes on as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kstreams.processor.columns.projected_rows import ProjectedRows
from kstreams.processor.columns.selected_rows import SelectedRows
from kstreams.processor.columns.target import Target
from kstreams.processor.context.record_cursor import RecordCursor
from kstreams.processor.context.task_context import TaskContext
from kstreams.processor.topology.nodes import SourceNode
from kstreams.processor.topology.operator import Forward
from kstreams.record import Headers


class ExitTarget:
    """One way through a region to the record path.

    Parameters
    ----------
    target : Target
        What arrives, and at which step.
    source : SourceNode
        Where the records come from.
    forward : callable
        The closure of that step.
    context : TaskContext
        Tells the operators behind which record they have.
    """

    takes_headers = True

    def __init__(self, target: Target, source: SourceNode, forward: Forward, context: TaskContext) -> None:
        self._rows, self._forward, self._context = ProjectedRows(target.view, source), forward, context

    def prepare(self, selected: SelectedRows) -> Callable[[], None]:
        """Make the rows; the answer forwards them, depth first and in order. Raises when something does not decode."""
        keys, values, headers = self._rows.keys(selected), self._rows.values(selected), selected.header_rows()
        stream_times = selected.stream_times(self._context.stream_time)
        run = RecordCursor(selected.batch, selected.offsets(), stream_times, selected.times().tolist())
        return lambda: self._run(run, zip(keys, values, run.cursor, strict=False), headers)

    def _run(self, run: RecordCursor, rows: Iterable[Any], headers: list[Headers] | None) -> None:
        context, forward = self._context, self._forward
        context.run = run
        if headers is None:
            for key, value, timestamp in rows:
                forward(key, value, timestamp)
        else:
            for (key, value, timestamp), context.headers in zip(rows, headers, strict=False):
                forward(key, value, timestamp)

    def complete(self) -> None:
        """Nothing is held back."""
