"""The progress of a run on Spark as text and as HTML, and its display in notebooks and terminals."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from kstreams.runtime.spark.batch_measures import BatchMeasures
from kstreams.runtime.spark.progress import SparkProgress


class RunState(NamedTuple):
    """What is shown of a run.

    Parameters
    ----------
    application_id : str
    status : str
    progress : SparkProgress
    batches : mapping of str to BatchMeasures
        By the name of each query: its last batch.
    error : BaseException or None
        The error that ended the run.
    """

    application_id: str
    status: str
    progress: SparkProgress
    batches: Mapping[str, BatchMeasures]
    error: BaseException | None


def text_of(state: RunState) -> str:
    """Return one line.

    Examples
    --------
    >>> progress = SparkProgress(records_in=1_200, commits=3, lag=40)
    >>> progress.records_out["counts"] = 7
    >>> text_of(RunState("shop", "RUNNING", progress, {}, None))
    'shop RUNNING: 1,200 records in, 7 out, 0 dropped, lag 40, 3 steps'
    """
    progress = state.progress
    counts = f"{progress.records_in:,} records in, {progress.records_out.total():,} out"
    rest = f"{progress.dropped.total():,} dropped, lag {progress.lag:,}, {progress.commits:,} steps"
    reason = "" if state.error is None else f"; {state.error}"
    return f"{state.application_id} {state.status}: {counts}, {rest}{reason}"


def html_of(state: RunState) -> str:
    """Return tables of the counters, of the written topics, the queries, the stores and the dropped records.

    Examples
    --------
    >>> "<th>shop</th>" in html_of(RunState("shop", "RUNNING", SparkProgress(), {}, None))
    True
    """
    progress = state.progress
    counters = [progress.records_in, progress.records_out.total(), progress.lag, progress.commits]
    tables = [
        _table([state.application_id, "records in", "records out", "lag", "steps"], [[state.status, *counters]]),
        _table(["topic", "records written"], sorted(progress.records_out.items())),
        _table(["query", "batch", "rows/s in", "rows/s processed", "ms"], map(_batch_row, state.batches.items())),
        _table(["store", "rows", "bytes"], ((name, size.rows, size.bytes) for name, size in progress.stores.items())),
        _table(["dropped by", "reason", "records"], ((*name, count) for name, count in progress.dropped.items())),
    ]
    error = "" if state.error is None else f"<pre>{escape(str(state.error))}</pre>"
    return "".join(tables) + error


def _batch_row(item: tuple[str, BatchMeasures]) -> Sequence[str | int]:
    name, batch = item
    rates = round(batch.input_rows_per_second), round(batch.processed_rows_per_second)
    return [name, batch.batch_id, *rates, batch.durations_ms.get("triggerExecution", 0)]


def _table(headings: Sequence[str], rows: Iterable[Sequence[str | int]]) -> str:
    """Return a table, or an empty text if there are no rows."""
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if body else ""


def _cell(value: str | int) -> str:
    return f"<td>{escape(value) if isinstance(value, str) else f'{value:,}'}</td>"


class LiveDisplay:
    """The display of an object that changes: in place in a notebook, else one line for each change.

    Parameters
    ----------
    shown : object
        An object with `_repr_html_` and a text of one line.
    """

    def __init__(self, shown: object) -> None:
        self._shown = shown
        self._last_line = ""
        self._in_place = _displayed(shown)
        self.update()

    def update(self) -> None:
        """Show the object as it is now."""
        line = repr(self._shown)
        if self._in_place is not None:
            self._in_place.update(self._shown)
        elif line != self._last_line:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        self._last_line = line


def _displayed(shown: object) -> Any:
    """Return the handle of an output of IPython; None outside of IPython."""
    ipython: Any = sys.modules.get("IPython")
    if ipython is None or ipython.get_ipython() is None:
        return None
    return ipython.display.display(shown, display_id=True)
