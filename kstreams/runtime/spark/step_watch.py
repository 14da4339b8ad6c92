"""`StepWatch`: the steps of tasks in Spark's UI and for its listeners, as those of a streaming query.

Steps are jobs, which the driver plans itself: without this, Spark would know of no query. It is told of one that is
named after the application, and of its progress after every step.
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
from kstreams.runtime.spark.exchange.reports import TaskReport, written_records
from kstreams.runtime.spark.exchange.rows import offsets_of
from kstreams.runtime.spark.io.offset_ranges import OffsetRanges
from kstreams.runtime.spark.progress import SparkProgress

logger = logging.getLogger(__name__)

_MOST_LETTERS = 200
_EVENTS = "org.apache.spark.sql.streaming.StreamingQueryListener$"


class StepWatch:
    """What Spark is told of the steps of one run.

    Parameters
    ----------
    session : SparkSession
        The one whose listeners are told.
    name : str
        Of the application.
    checkpoint_id : str
        Stands for the query, from run to run.
    sub_topologies : collection of SubTopology
        Those that run in the steps.
    clock : Clock
    """

    def __init__(
        self,
        session: SparkSession,
        name: str,
        checkpoint_id: str,
        sub_topologies: Collection[SubTopology],
        clock: Clock,
    ) -> None:
        self._session = session
        self._name = name
        self._clock = clock
        self._of_query = {"id": str(uuid.UUID(checkpoint_id)), "runId": str(uuid.uuid4()), "name": name}
        self._what = "; ".join(f"sub-topology {sub.id}: {_operators(sub)}" for sub in sub_topologies)
        self._operators = _operators_by_store(sub_topologies)
        self._step = 0
        self._ranges = dict[TopicPartition, tuple[int, int]]()
        self._began_ms = self._ended_ms = clock.uptime_ms()
        self._runs = False
        self._stream_times = dict[str, int]()
        self._kinds: dict[str, Any] = {}

    def begin(self, step: int, ranges: OffsetRanges) -> None:
        """A step begins: its jobs say so."""
        self._step = step
        self._ranges = dict(ranges)
        self._began_ms = self._clock.uptime_ms()
        if not self._runs:
            self._runs = True
            self._post("QueryStartedEvent", {**self._of_query, "timestamp": _at(self._began_ms), "jobTags": []})
        part = "end of input" if step % 2 else f"step {step // 2}"
        records = sum(end - start for start, end in ranges.values())
        description = f"{self._name}, {part} ({records:,} offsets): {self._what}"
        self._session.sparkContext.setJobDescription(textwrap.shorten(description, _MOST_LETTERS, placeholder=" ..."))

    def done(self, reports: list[TaskReport], progress: SparkProgress) -> None:
        """A step is done."""
        now_ms = self._clock.uptime_ms()
        between = max(now_ms - self._ended_ms, 1)
        took = max(now_ms - self._began_ms, 1)
        self._ended_ms = now_ms
        for report in reports:
            self._stream_times |= report.stream_times
        values = {
            **self._of_query,
            "timestamp": _at(self._began_ms),
            "batchId": self._step // 2,
            "batchDuration": took,
            "durationMs": {"addBatch": took, "triggerExecution": took},
            "eventTime": self._event_time(),
            "stateOperators": [self._store(name, progress) for name in sorted(progress.stores)],
            "sources": [_source(self._ranges, reports, between, took) | {"metrics": _dropped(progress)}],
            "sink": {"description": "topics", "numOutputRows": sum(written_records(reports).values()), "metrics": {}},
            "observedMetrics": {},
        }
        self._post("QueryProgressEvent", {"progress": values})

    def end(self, error: BaseException | None) -> None:
        """The run is over."""
        if self._runs:
            of_run = {key: self._of_query[key] for key in ("id", "runId")}
            self._post(
                "QueryTerminatedEvent", {**of_run, "exception": error and str(error), "errorClassOnException": None}
            )

    def _event_time(self) -> dict[str, str]:
        """The tasks' stream times, which stand in for a watermark; the lowest is what Spark's own would follow."""
        times = self._stream_times.values()
        return {"watermark": _at(min(times)), "max": _at(max(times))} if times else {}

    def _store(self, name: str, progress: SparkProgress) -> dict[str, object]:
        size = progress.stores[name]
        users = self._operators.get(name, ())
        late = [n for (user, why), n in progress.dropped.items() if user in users and why.startswith("late")]
        return {
            **dict.fromkeys(("allUpdatesTimeMs", "numRowsRemoved", "allRemovalsTimeMs", "commitTimeMs"), 0),
            "operatorName": name,
            "numRowsTotal": size.rows,
            "numRowsUpdated": size.updated,
            "memoryUsedBytes": size.bytes,
            "numRowsDroppedByWatermark": sum(late),
            "numShufflePartitions": size.tasks,
            "numStateStoreInstances": size.tasks,
            "customMetrics": {},
        }

    def _post(self, kind: str, content: Mapping[str, Any]) -> None:
        """Let listeners and the UI know. What only shows must end no run: these are parts of Spark that may change."""
        try:
            if kind not in self._kinds:
                self._kinds[kind] = self._companion(f"{_EVENTS}{kind}$")
            event = self._kinds[kind].fromJson(msgspec.json.encode(content).decode())
            self._session._jsparkSession.streams().postListenerEvent(event)
        except Exception as error:
            logger.debug("Spark's listeners were not told of %s: %s", kind, error)

    def _companion(self, name: str) -> Any:
        """The Scala object that makes events of a kind."""
        java: Any = self._session.sparkContext._jvm.java.lang
        loader = java.Thread.currentThread().getContextClassLoader()
        return java.Class.forName(name, True, loader).getField("MODULE$").get(None)


def _operators(sub: SubTopology) -> str:
    return ", ".join(node.name for node in sub.nodes)


def _at(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _dropped(progress: SparkProgress) -> dict[str, str]:
    return {f"dropped by {operator}: {reason}": str(n) for (operator, reason), n in progress.dropped.items()}


def _source(ranges: OffsetRanges, reports: Iterable[TaskReport], between: int, took: int) -> dict[str, object]:
    """One for all topics: which of them a record came from, reports do not tell."""
    records = sum(report.records_in for report in reports)
    starts = offsets_of({source: start for source, (start, _) in ranges.items()})
    ends = msgspec.json.encode(offsets_of({source: end for source, (_, end) in ranges.items()})).decode()
    return {
        "description": f"topics {', '.join(sorted(starts))}",
        "startOffset": msgspec.json.encode(starts).decode(),
        "endOffset": ends,
        "latestOffset": ends,
        "numInputRows": records,
        "inputRowsPerSecond": records * 1000 / between,
        "processedRowsPerSecond": records * 1000 / took,
    }


def _operators_by_store(sub_topologies: Iterable[SubTopology]) -> dict[str, set[str]]:
    drops: dict[str, set[str]] = {}
    for node in (node for sub in sub_topologies for node in sub.nodes if isinstance(node, ProcessorNode)):
        for store in node.stores:
            drops.setdefault(store, set()).add(node.name)
    return drops
