"""`TaskReport`: the report of a task to the driver: counts, transactions or staged rows, or an error."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from operator import add

import msgspec
from msgspec.structs import astuple
from pyspark.sql import DataFrame

from kstreams import errors
from kstreams.kernel.decoders import decode_json
from kstreams.kernel.source_line import operator_in
from kstreams.runtime.spark.exchange.blocks import CONTROL_TOPIC, Block
from kstreams.runtime.spark.steps import StateVersion

_KINDS: dict[str, type[errors.KStreamsError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.KStreamsError) and kind is not errors.ProcessingError
}
_FAILURE = re.compile(r"(.+?) failed on record (.*?): (.*)", re.DOTALL)
"""The form of the text of a ProcessingError."""
_KSTREAMS_ERROR = re.compile(r"kstreams\.errors\.(\w+): ([^\n]+?)(?: SQLSTATE: \w+)?$", re.MULTILINE)


_PYTHON_ERROR = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\w[\w.]*: [^\n]+)", re.MULTILINE)
"""An error of a Python function in Spark's exception."""

_NOISE = re.compile(r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: |\s*SQLSTATE: \w+")
"""The parts of Spark's messages that do not describe the error."""

ENDED = "Spark ended the run: "
"""The prefix of errors that are not KStreamsErrors in the worker."""


class TaskError(msgspec.Struct, frozen=True):
    """A KStreamsError as data. Tasks do not raise it, since Spark would run them again, which cannot succeed."""

    kind: str
    message: str


class StoreSize(msgspec.Struct, frozen=True):
    """The estimated size of a store in some tasks before their last step, and the rows that the step has changed.

    Parameters
    ----------
    rows, bytes : int
        RocksDB's estimates; 0 for stores in memory.
    updated : int
    tasks : int
    """

    rows: int
    bytes: int
    updated: int
    tasks: int = 1

    def __add__(self, other: StoreSize) -> StoreSize:
        return StoreSize(*map(add, astuple(self), astuple(other)))


class TaskReport(msgspec.Struct, frozen=True):
    """The report of one task in one step.

    Parameters
    ----------
    dropped : list of (str, str, int)
        Operator, reason and number of dropped records.
    error : TaskError, optional
        The error that ended the task.
    records_in : int
        The number of processed records of source topics.
    written : dict of str to int
        The number of records written to each topic of the user, by its name in the topology.
    shuffled_topics : list of str
        The topics whose records Spark shuffles to other tasks of the step.
    outputs : list of str
        The names of the transactions or objects that hold the written rows.
    states : dict of str to StateVersion
        The state version of the task after the step.
    resting : list of str
        The task itself, if it need not run before its next record.
    stores : dict of str to StoreSize
        The sizes of the task's stores.
    stream_times : dict of str to int
        The highest timestamp (ms) that the task has processed, unless it has processed nothing yet.
    """

    dropped: list[tuple[str, str, int]] = []
    error: TaskError | None = None
    records_in: int = 0
    written: dict[str, int] = {}
    shuffled_topics: list[str] = []
    outputs: list[str] = []
    states: dict[str, StateVersion] = {}
    resting: list[str] = []
    stores: dict[str, StoreSize] = {}
    stream_times: dict[str, int] = {}


def report(partition: int, task_report: TaskReport) -> Block:
    """Return the control block with the report of a task."""
    return Block(CONTROL_TOPIC, partition, 0, 0, 0, msgspec.json.encode(task_report))


def reported(encoded: bytes) -> TaskReport:
    """Decode a report."""
    return decode_json(encoded, TaskReport)


def taken_reports(blocks: DataFrame) -> list[TaskReport]:
    """Run a frame's tasks, and return their reports. Only control blocks reach the driver."""
    rows = blocks.where(f"topic = '{CONTROL_TOPIC}'").select("rows").collect()
    return [reported(row["rows"]) for row in rows]


def resting_tasks(reports: Iterable[TaskReport]) -> frozenset[str]:
    """Return the tasks that need not run before their next record."""
    return frozenset(task for report in reports for task in report.resting)


def written_records(reports: Iterable[TaskReport]) -> Counter[str]:
    """Return the number of records written to each topic of the user."""
    counts: Counter[str] = Counter()
    for report in reports:
        counts.update(report.written)
    return counts


def dropped_records(reports: Iterable[TaskReport]) -> Counter[tuple[str, str]]:
    """Return the number of dropped records by operator and reason."""
    counts: Counter[tuple[str, str]] = Counter()
    for report in reports:
        for operator, reason, count in report.dropped:
            counts[operator, reason] += count
    return counts


def describe(error: errors.KStreamsError) -> TaskError:
    """Convert an error to data."""
    return TaskError(type(error).__name__, str(error))


def as_kstreams_error(error: Exception) -> errors.KStreamsError:
    """Return the error of a Spark query: the KStreamsError in Spark's exception, or one with its first line.

    Examples
    --------
    >>> as_kstreams_error(RuntimeError("Job aborted: kstreams.errors.LogError: the log is gone.\\n at x"))
    LogError('the log is gone.')
    """
    match = _KSTREAMS_ERROR.search(str(error))
    in_python = _PYTHON_ERROR.search(str(error))
    if match is None and in_python is not None:
        return errors.KStreamsError(f"{ENDED}{in_python[1]}")
    if match is None:
        message = _NOISE.sub("", str(error)).partition("\n")[0].strip()
        return errors.KStreamsError(f"{ENDED}{message}")
    return _error_of(match[1], match[2].strip())


def is_interrupt(error: BaseException) -> bool:
    """Return True if Spark has cancelled all jobs of the session, as PySpark does when the user interrupts a cell."""
    return _ALL_CANCELLED in str(error)


_ALL_CANCELLED = "cancelled as part of cancellation of all jobs"


def raise_first(reports: Iterable[TaskReport]) -> None:
    """Raise the first error in reports."""
    for report in reports:
        if report.error is not None:
            raise _error_of(report.error.kind, report.error.message)


def _error_of(kind: str, message: str) -> errors.KStreamsError:
    """Create the error of a worker from the name of its class and its message."""
    failure = _FAILURE.fullmatch(message) if kind == errors.ProcessingError.__name__ else None
    if failure is not None:
        return errors.ProcessingError(*operator_in(failure[1]), failure[2], _cause_of(failure[3]))
    return _KINDS.get(kind, errors.KStreamsError)(message)


def _cause_of(text: str) -> Exception:
    """Create the cause of a worker's error, with the class name that it had in the worker."""
    name, _, message = text.partition(": ")
    kind: type[Exception] = type(name if name.isidentifier() else "RuntimeError", (Exception,), {})
    return kind(message)
