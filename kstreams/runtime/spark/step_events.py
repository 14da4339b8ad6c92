"""`StepEvents`: posts the events of a streaming query for the steps of tasks, for Spark's UI and its listeners.

The driver runs steps as plain jobs, so Spark sees no streaming query. `StepEvents` posts the start of a query that is
named after the application, its progress after every step, and its end.
"""

from __future__ import annotations

import logging
import textwrap
import uuid
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.processor.topology.topology import ProcessorNode, SubTopology
from kstreams.runtime.spark.batch_measures import BatchMeasures
from kstreams.runtime.spark.exchange.reports import TaskReport, written_records
from kstreams.runtime.spark.exchange.rows import offsets_of
from kstreams.runtime.spark.io.offset_ranges import OffsetRanges
from kstreams.runtime.spark.progress import SparkProgress

logger = logging.getLogger(__name__)

_MAX_TITLE_LENGTH = 200
_EVENTS = "org.apache.spark.sql.streaming.StreamingQueryListener$"


def describe_jobs(session: SparkSession, query: str, operators: str, step: int, ranges: OffsetRanges) -> None:
    """Let Spark's UI show the query, its step and its operators as the description of this thread's next jobs."""
    session.sparkContext.setJobDescription(title_of(query, operators, step, ranges))


def title_of(query: str, operators: str, step: int, ranges: OffsetRanges) -> str:
    """Return the title of a step.

    Examples
    --------
    >>> title_of("shop", "filter() app.py:12, to() app.py:12", 2, {TopicPartition("orders", 0): (1_000, 3_500)})
    'shop, step 1 (2,500 offsets): filter() app.py:12, to() app.py:12'
    """
    step_name = "end of input" if step % 2 else f"step {step // 2}"
    offsets = sum(end - start for start, end in ranges.values())
    title = f"{query}, {step_name} ({offsets:,} offsets): {operators}"
    return textwrap.shorten(title, _MAX_TITLE_LENGTH, placeholder=" ...")


class StepEvents:
    """The events of one run.

    Parameters
    ----------
    session : SparkSession
        The session whose listeners receive the events.
    name : str
        The name of the application.
    checkpoint_id : str
        The id of the query, which is the same in all runs.
    sub_topologies : collection of SubTopology
        The sub-topologies that run in the steps.
    operators : str
        Their operators, as the UI shows them.
    clock : Clock
    """

    def __init__(
        self,
        session: SparkSession,
        name: str,
        checkpoint_id: str,
        sub_topologies: Collection[SubTopology],
        operators: str,
        clock: Clock,
    ) -> None:
        self._session = session
        self._name = name
        self._clock = clock
        self._query_ids = {"id": str(uuid.UUID(checkpoint_id)), "runId": str(uuid.uuid4()), "name": name}
        self._operators = operators
        self._operators_of_stores = _operators_by_store(sub_topologies)
        self._step = 0
        self._ranges = dict[TopicPartition, tuple[int, int]]()
        self._step_started_ms = clock.uptime_ms()
        self._step_ended_ms = self._step_started_ms
        self._started = False
        self._stream_times = dict[str, int]()
        self.batches = dict[str, BatchMeasures]()
        """The measures of the last step, by the name of the application; empty before the first step."""
        self._event_types: dict[str, Any] = {}

    def begin(self, step: int, ranges: OffsetRanges) -> None:
        """Describe the jobs of a step that begins, and post the start of the query at the first step."""
        self._step = step
        self._ranges = dict(ranges)
        self._step_started_ms = self._clock.uptime_ms()
        if not self._started:
            self._started = True
            started_at = _iso_time(self._step_started_ms)
            self._post("QueryStartedEvent", {**self._query_ids, "timestamp": started_at, "jobTags": []})
        describe_jobs(self._session, self._name, self._operators, step, ranges)

    def step_done(self, reports: list[TaskReport], progress: SparkProgress) -> None:
        """Post the progress of the query after a step."""
        now_ms = self._clock.uptime_ms()
        interval_ms = max(now_ms - self._step_ended_ms, 1)
        duration_ms = max(now_ms - self._step_started_ms, 1)
        self._step_ended_ms = now_ms
        for report in reports:
            self._stream_times |= report.stream_times
        records = sum(report.records_in for report in reports)
        durations_ms = {"addBatch": duration_ms, "triggerExecution": duration_ms}
        batch = BatchMeasures(
            batch_id=self._step // 2,
            input_rows_per_second=records * 1000 / interval_ms,
            processed_rows_per_second=records * 1000 / duration_ms,
            durations_ms=durations_ms,
            states={},
        )
        self.batches[self._name] = batch
        values = {
            **self._query_ids,
            "timestamp": _iso_time(self._step_started_ms),
            "batchId": batch.batch_id,
            "batchDuration": duration_ms,
            "durationMs": durations_ms,
            "eventTime": self._event_time(),
            "stateOperators": [self._store(name, progress) for name in sorted(progress.stores)],
            "sources": [_source(self._ranges, records, batch) | {"metrics": _dropped(progress)}],
            "sink": {"description": "topics", "numOutputRows": sum(written_records(reports).values()), "metrics": {}},
            "observedMetrics": {},
        }
        self._post("QueryProgressEvent", {"progress": values})

    def end(self, error: BaseException | None) -> None:
        """Post the end of the query."""
        if self._started:
            run_ids = {key: self._query_ids[key] for key in ("id", "runId")}
            self._post(
                "QueryTerminatedEvent", {**run_ids, "exception": error and str(error), "errorClassOnException": None}
            )

    def _event_time(self) -> dict[str, str]:
        """Return the stream times of tasks: the lowest in place of Spark's watermark, and the highest."""
        times = self._stream_times.values()
        return {"watermark": _iso_time(min(times)), "max": _iso_time(max(times))} if times else {}

    def _store(self, name: str, progress: SparkProgress) -> dict[str, object]:
        size = progress.stores[name]
        users = self._operators_of_stores.get(name, ())
        late_counts = [
            count
            for (operator, reason), count in progress.dropped.items()
            if operator in users and reason.startswith("late")
        ]
        return {
            **dict.fromkeys(("allUpdatesTimeMs", "numRowsRemoved", "allRemovalsTimeMs", "commitTimeMs"), 0),
            "operatorName": name,
            "numRowsTotal": size.rows,
            "numRowsUpdated": size.updated,
            "memoryUsedBytes": size.bytes,
            "numRowsDroppedByWatermark": sum(late_counts),
            "numShufflePartitions": size.tasks,
            "numStateStoreInstances": size.tasks,
            "customMetrics": {},
        }

    def _post(self, event_type: str, content: Mapping[str, object]) -> None:
        """Post an event to Spark's listeners and UI.

        This uses internal parts of Spark that may change. So errors are only logged: a run must not end because an
        event cannot be posted.
        """
        try:
            if event_type not in self._event_types:
                self._event_types[event_type] = self._companion(f"{_EVENTS}{event_type}$")
            event = self._event_types[event_type].fromJson(msgspec.json.encode(content).decode())
            self._session._jsparkSession.streams().postListenerEvent(event)
        except Exception as error:
            logger.debug("%s was not posted to Spark's listeners: %s", event_type, error)

    def _companion(self, name: str) -> Any:
        """Return the Scala companion object of an event type, which creates its events."""
        java: Any = self._session.sparkContext._jvm.java.lang
        loader = java.Thread.currentThread().getContextClassLoader()
        return java.Class.forName(name, True, loader).getField("MODULE$").get(None)


def _iso_time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _dropped(progress: SparkProgress) -> dict[str, str]:
    return {f"dropped by {operator}: {reason}": str(count) for (operator, reason), count in progress.dropped.items()}


def _source(ranges: OffsetRanges, records: int, batch: BatchMeasures) -> dict[str, object]:
    """Return the progress of all topics as one source: reports do not count records by topic."""
    starts = offsets_of({source: start for source, (start, _) in ranges.items()})
    ends = msgspec.json.encode(offsets_of({source: end for source, (_, end) in ranges.items()})).decode()
    return {
        "description": f"topics {', '.join(sorted(starts))}",
        "startOffset": msgspec.json.encode(starts).decode(),
        "endOffset": ends,
        "latestOffset": ends,
        "numInputRows": records,
        "inputRowsPerSecond": batch.input_rows_per_second,
        "processedRowsPerSecond": batch.processed_rows_per_second,
    }


def _operators_by_store(sub_topologies: Iterable[SubTopology]) -> dict[str, set[str]]:
    operators: dict[str, set[str]] = {}
    for node in (node for sub in sub_topologies for node in sub.nodes if isinstance(node, ProcessorNode)):
        for store in node.stores:
            operators.setdefault(store, set()).add(node.name)
    return operators
