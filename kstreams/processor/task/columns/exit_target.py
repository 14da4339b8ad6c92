"""`ExitTarget`: the end of a region before an operator that takes records one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kstreams.processor.columns.projected_rows import ProjectedRows
from kstreams.processor.columns.selected_rows import SelectedRows
from kstreams.processor.columns.target import Target
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.record_cursor import RecordCursor
from kstreams.processor.task.record_loop import run_plain, run_with_headers
from kstreams.processor.topology.nodes import SourceNode
from kstreams.processor.topology.operator import Forward
from kstreams.record import Headers


class ExitTarget:
    """The end of a path through a region, where records are forwarded one by one.

    Parameters
    ----------
    target : Target
        The columns that arrive, and the next step.
    source : SourceNode
        The source of the region.
    forward : callable
        The closure of the next step.
    current : CurrentRecord
        The current record, which is set for the following operators.
    follows_time : bool
        True if the progress of the task is updated per record (`CurrentRecord.reached`).
    """

    takes_headers = True

    def __init__(
        self, target: Target, source: SourceNode, forward: Forward, current: CurrentRecord, *, follows_time: bool
    ) -> None:
        self._rows = ProjectedRows(target.view, source)
        self._forward = forward
        self._current = current
        self._follows_time = follows_time

    def prepare(self, selected: SelectedRows) -> Callable[[], None]:
        """Create the rows; the returned function forwards them, depth first and in order. Raises if a row does not
        decode.
        """
        keys = self._rows.keys(selected)
        values = self._rows.values(selected)
        headers = selected.header_rows()
        stream_times = selected.stream_times(self._current.stream_time)
        cursor = RecordCursor(selected.batch, selected.offsets(), stream_times, selected.times().tolist())
        rows: Iterable[object] = zip(keys, values, cursor.timestamps, strict=False)
        if self._follows_time:
            rows = self._current.with_progress(rows, selected.reached(self._current.reached).tolist())
        return lambda: self._run(cursor, rows, headers)

    def _run(self, cursor: RecordCursor, rows: Iterable[object], headers: list[Headers] | None) -> None:
        current = self._current
        current.move_to(cursor)
        if headers is None:
            run_plain(self._forward, rows)
        else:
            run_with_headers(current, self._forward, rows, headers)

    def complete(self) -> None:
        """Do nothing: no rows are buffered."""
