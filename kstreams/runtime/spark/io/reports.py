"""What tasks report to the driver besides their rows: counts, or the error that ended them; one control row each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from kstreams import errors
from kstreams.runtime.spark.io.rows import ARROW_OUT_SCHEMA
from kstreams.source_line import operator_in

_KINDS: dict[str, type[errors.KStreamsError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.KStreamsError) and kind is not errors.ProcessingError
}
_FAILURE = re.compile(r"(.+?) failed on record (.*?): (.*)", re.DOTALL)
"""What a ProcessingError says."""
_IN_TEXT = re.compile(r"kstreams\.errors\.(\w+): ([^\n]+)")

CONTROL_TOPIC = ""
"""The topic of control rows: each task gets one, so that it runs without input too, and returns one with its report."""


class TaskError(msgspec.Struct, frozen=True):
    """A KStreamsError as data: a user's mistake is no reason for Spark to try the task again."""

    kind: str
    message: str


class TaskReport(msgspec.Struct, frozen=True):
    """What one task did in one step.

    Parameters
    ----------
    dropped : list of (str, str, int)
        Operator, reason, and how many records.
    error : TaskError, optional
        What ended it.
    wrote : list of str
        The topics that it wrote to.
    records_in : int
        How many records of source topics it is done with.
    """

    dropped: list[tuple[str, str, int]] = []
    error: TaskError | None = None
    wrote: list[str] = []
    records_in: int = 0


def report(
    partition: int,
    *,
    dropped: Iterable[tuple[str, str, int]] = (),
    error: TaskError | None = None,
    wrote: Iterable[str] = (),
    records_in: int = 0,
) -> pa.RecordBatch:
    """The control row with the report of a task: what it read and dropped or what ended it, and where it wrote."""
    value = msgspec.json.encode(TaskReport(list(dropped), error, sorted(wrote), records_in))
    zeros = dict.fromkeys(("offset", "timestamp", "origin", "stream_time"), 0)
    row = {"topic": CONTROL_TOPIC, "partition": partition, "value": value, **zeros}
    return pa.RecordBatch.from_pylist([row], schema=ARROW_OUT_SCHEMA)


def one_dropped(operator: str, reason: str) -> bytes:
    """The report in a control row that stands for a record dropped on the relational path."""
    return msgspec.json.encode(TaskReport([(operator, reason, 1)]))


def split_reports(rows: pa.Table) -> tuple[pa.Table, list[TaskReport]]:
    """The rows to be written to topics, and the reports of the tasks."""
    is_control = pc.equal(rows["topic"], CONTROL_TOPIC)
    encoded = rows.filter(is_control)["value"].to_pylist()
    return rows.filter(pc.invert(is_control)), [msgspec.json.decode(value, type=TaskReport) for value in encoded]


def dropped_records(reports: Iterable[TaskReport]) -> Counter[tuple[str, str]]:
    """How many records each (operator, reason) has dropped."""
    counts: Counter[tuple[str, str]] = Counter()
    for each in reports:
        for operator, reason, count in each.dropped:
            counts[operator, reason] += count
    return counts


def describe(error: errors.KStreamsError) -> TaskError:
    """An error as data."""
    return TaskError(type(error).__name__, str(error))


def as_kstreams_error(error: Exception) -> errors.KStreamsError:
    """What ended a query of Spark: the KStreamsError whose text its exception carries, else one with its first line.

    Examples
    --------
    >>> as_kstreams_error(RuntimeError("Job aborted: kstreams.errors.LogError: the log is gone.\\n at x"))
    LogError('the log is gone.')
    """
    found = _IN_TEXT.search(str(error))
    if found is None:
        return errors.KStreamsError(f"Spark ended the run: {str(error).partition(chr(10))[0]}")
    return _made(found[1], found[2].strip())


def raise_first(reports: Iterable[TaskReport]) -> None:
    """Raise the error of the first task that had one."""
    for each in reports:
        if each.error is not None:
            raise _made(each.error.kind, each.error.message)


def _made(kind: str, message: str) -> errors.KStreamsError:
    """The error of this kind with this message."""
    failure = _FAILURE.fullmatch(message) if kind == errors.ProcessingError.__name__ else None
    if failure is not None:
        return errors.ProcessingError(*operator_in(failure[1]), failure[2], _remote(failure[3]))
    return _KINDS.get(kind, errors.KStreamsError)(message)


def _remote(text: str) -> Exception:
    """The cause of a worker's error, under the name it had there."""
    name, _, message = text.partition(": ")
    kind: type[Exception] = type(name if name.isidentifier() else "RuntimeError", (Exception,), {})
    return kind(message)
