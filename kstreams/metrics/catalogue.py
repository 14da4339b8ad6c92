"""The list of all metrics: group, name, kind, labels, description and recording level of each, as in Kafka Streams.

The page `docs/metrics.md` and the queries of the dashboard `docs/grafana.json` come from this list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

CLIENT = "stream-metrics"
THREAD = "stream-thread-metrics"
TASK = "stream-task-metrics"
NODE = "stream-processor-node-metrics"
TOPIC = "stream-topic-metrics"
STATE = "stream-state-metrics"
UPDATER = "stream-state-updater-metrics"
CONSUMER = "consumer-fetch-manager-metrics"
CACHE = "stream-record-cache-metrics"


class MetricKind(Enum):
    """How the values of a metric change."""

    COUNTER = "counter"  # only grows, from the start of the process
    GAUGE = "gauge"
    TEXT = "text"


class RecordingLevel(Enum):
    """The `metrics.recording.level` that a metric needs. Kafka: `Sensor.RecordingLevel`."""

    INFO = "INFO"
    DEBUG = "DEBUG"


class MetricName(NamedTuple):
    """The identity of a value. Kafka: `MetricName`.

    Parameters
    ----------
    group, name : str
    tags : tuple of (str, str)
        The values of the metric's labels.

    Examples
    --------
    >>> MetricName("stream-thread-metrics", "process-total", (("thread-id", "app-StreamThread-1"),)).tag("thread-id")
    'app-StreamThread-1'
    """

    group: str
    name: str
    tags: tuple[tuple[str, str], ...] = ()

    def tag(self, name: str) -> str | None:
        """Return the value of a tag, or None if there is no such tag."""
        return dict(self.tags).get(name)


class MetricTemplate(NamedTuple):
    """A metric that has one value for each combination of labels. Kafka: `MetricNameTemplate`.

    Parameters
    ----------
    group, name : str
    kind : MetricKind
    labels : tuple of str
        The names of the tags on the native engine. On Spark, some are absent.
    description : str
    level : RecordingLevel
    ours : bool
        True if Kafka Streams has no such metric.
    """

    group: str
    name: str
    kind: MetricKind
    labels: tuple[str, ...]
    description: str
    level: RecordingLevel
    ours: bool


@dataclass(frozen=True)
class _Scope:
    """The parts of a template that several metrics share."""

    group: str
    labels: tuple[str, ...]
    level: RecordingLevel = RecordingLevel.INFO

    def debug(self) -> _Scope:
        return replace(self, level=RecordingLevel.DEBUG)

    def by(self, *labels: str) -> _Scope:
        """Return a scope with further labels."""
        return replace(self, labels=(*self.labels, *labels))

    def counter(self, name: str, description: str, *, ours: bool = False) -> MetricTemplate:
        return self._template(name, MetricKind.COUNTER, description, ours)

    def gauge(self, name: str, description: str, *, ours: bool = False) -> MetricTemplate:
        return self._template(name, MetricKind.GAUGE, description, ours)

    def text(self, name: str, description: str) -> MetricTemplate:
        return self._template(name, MetricKind.TEXT, description, False)

    def latency(self, name: str, action: str) -> tuple[MetricTemplate, ...]:
        return (
            self.gauge(f"{name}-latency-avg", f"Mean duration of {action}, in milliseconds."),
            self.gauge(f"{name}-latency-max", f"Longest duration of {action}, in milliseconds."),
        )

    def rate(self, name: str, events: str) -> MetricTemplate:
        return self.gauge(f"{name}-rate", f"{events}, per second.")

    def rate_and_total(self, name: str, events: str) -> tuple[MetricTemplate, ...]:
        return self.rate(name, events), self.counter(f"{name}-total", f"{events}, since the start.")

    def extremes(self, name: str, values: str) -> tuple[MetricTemplate, ...]:
        return (
            self.gauge(f"{name}-avg", f"{values}: the mean."),
            self.gauge(f"{name}-max", f"{values}: the maximum."),
        )

    def activity(self, name: str, action: str, events: str) -> tuple[MetricTemplate, ...]:
        ratio = self.gauge(f"{name}-ratio", f"Share of the thread's time that {action} takes.")
        return (*self.latency(name, action), *self.rate_and_total(name, events), ratio)

    def _template(self, name: str, kind: MetricKind, description: str, ours: bool) -> MetricTemplate:
        return MetricTemplate(self.group, name, kind, self.labels, description, self.level, ours)


_CLIENT = _Scope(CLIENT, ("client-id",))
_THREAD = _Scope(THREAD, ("thread-id",))
_TASK = _Scope(TASK, ("thread-id", "task-id"))
_TASK_DEBUG = _TASK.debug()
_TASK_OF_CLIENT = _Scope(TASK, ("client-id", "task-id"))
_NODE = _Scope(NODE, ("thread-id", "task-id", "processor-node-id"))
_NODE_OF_TOPIC = _NODE.by("topic-name")
_CONSUMED = _Scope(TOPIC, ("thread-id", "task-id", "processor-node-id", "topic-name"))
_PRODUCED = _Scope(TOPIC, ("thread-id", "topic-name"))
_PARTITION = _Scope(CONSUMER, ("client-id", "topic", "partition"))
_STORE = _Scope(STATE, ("thread-id", "task-id", "state-id"), RecordingLevel.DEBUG)
_CACHE = _Scope(CACHE, ("thread-id", "task-id", "record-cache-id"), RecordingLevel.DEBUG)
_ROCKSDB_STORE = _Scope(STATE, ("thread-id", "task-id", "rocksdb-state-id"))
_DATABASE = _Scope(STATE, ("thread-id", "task-id"), RecordingLevel.DEBUG)
_UPDATER = _Scope(UPDATER, ("client-id",))

_OPERATIONS = {
    "get": "Look-ups of a key",
    "put": "Writes of a key",
    "put-if-absent": "Writes of keys that are absent",
    "put-all": "Writes of several keys",
    "delete": "Deletions of a key",
    "remove": "Deletions of a session",
    "range": "Scans between two keys",
    "prefix-scan": "Scans of a prefix",
    "all": "Scans of all keys",
    "fetch": "Reads of windows or sessions",
    "flush": "Writes of committed changes to disk",
    "restore": "Batches of a changelog",
}


def _operation(name: str, events: str) -> tuple[MetricTemplate, ...]:
    action = f"`{name}` of a store, with a scan measured to its end"
    return (*_STORE.latency(name, action), _STORE.rate(name, events))


_PROPERTIES = {
    "total-sst-files-size": "Bytes of a store's files.",
    "live-sst-files-size": "Bytes of a store's files that are in use.",
    "estimate-num-keys": "Rows of a store, by RocksDB's estimate.",
    "num-immutable-mem-table": "Memtables that wait to be written.",
    "cur-size-active-mem-table": "Bytes of the active memtable.",
    "cur-size-all-mem-tables": "Bytes of memtables that are not written yet.",
    "size-all-mem-tables": "Bytes of all memtables, including those that readers pin.",
    "num-entries-active-mem-table": "Entries of the active memtable.",
    "num-entries-imm-mem-tables": "Entries of memtables that wait to be written.",
    "num-deletes-active-mem-table": "Deletions in the active memtable.",
    "num-deletes-imm-mem-tables": "Deletions in memtables that wait to be written.",
    "mem-table-flush-pending": "1 while a memtable waits to be written.",
    "num-running-flushes": "Memtables that are being written.",
    "compaction-pending": "1 while a compaction waits.",
    "num-running-compactions": "Compactions under way.",
    "estimate-pending-compaction-bytes": "Bytes that compactions have to rewrite, by RocksDB's estimate.",
    "num-live-versions": "Versions of the set of files that are in use.",
    "block-cache-capacity": "Capacity of the block cache of the process, in bytes.",
    "block-cache-usage": "Bytes in the block cache.",
    "block-cache-pinned-usage": "Bytes in the block cache that cannot be evicted now.",
    "estimate-table-readers-mem": "Bytes of indices and filters outside the block cache.",
    "background-errors": "Errors of flushes and compactions.",
}
_STATISTICS = {
    "bytes-written": "Bytes written to RocksDB",
    "bytes-read": "Bytes read from RocksDB",
    "memtable-bytes-flushed": "Bytes of memtables written to disk",
    "bytes-written-compaction": "Bytes written by compactions",
    "bytes-read-compaction": "Bytes read by compactions",
}
_HIT_RATIOS = {
    "memtable-hit-ratio": "memtables",
    "block-cache-data-hit-ratio": "data blocks in the block cache",
    "block-cache-index-hit-ratio": "index blocks in the block cache",
    "block-cache-filter-hit-ratio": "filter blocks in the block cache",
}

_AGE = (
    "age of records by their timestamps, in milliseconds, when a source reads and processes them or a sink writes "
    "them. The ages of more than 32 records at once are those of evenly spaced records."
)
_PUNCTUATE = "calling punctuators that are due", "Rounds with a punctuator that was due"
_BYTES = "of keys and values, estimated from the memory that their columns take."

_METRICS: tuple[MetricTemplate, ...] = (
    _CLIENT.text("version", "Version of kstreams."),
    _CLIENT.text("application-id", "Id of the application."),
    _CLIENT.text("state", "State of the client: CREATED, REBALANCING, RUNNING and so on."),
    _CLIENT.gauge("alive-stream-threads", "Stream threads that run or start."),
    _CLIENT.counter("failed-stream-threads", "Stream threads that an error has ended."),
    _CLIENT.counter("stalls-total", "Tasks that made no progress for task.timeout.ms.", ours=True),
    _CLIENT.counter("rebuilds-total", "Tasks whose damaged stores were rebuilt.", ours=True),
    _CLIENT.counter("reassigned-total", "Assignments of a task to a process that had the task before.", ours=True),
    # threads
    *_THREAD.activity("poll", "a poll of the consumer", "Polls"),
    *_THREAD.activity("process", "a run of records", "Records processed"),
    *_THREAD.activity("punctuate", *_PUNCTUATE),
    *_THREAD.activity("commit", "a commit of all tasks", "Commits"),
    *_THREAD.extremes("poll-records", "Records of a poll"),
    *_THREAD.extremes("process-records", "Records of a run"),
    *_THREAD.rate_and_total("task-created", "Tasks that the thread opened"),
    *_THREAD.rate_and_total("task-closed", "Tasks that the thread closed"),
    _THREAD.counter("blocked-time-ns-total", "Time spent in polls and commits, in nanoseconds."),
    _THREAD.gauge("thread-start-time", "When the thread was created, in milliseconds since 1970."),
    _THREAD.text("state", "State of the thread."),
    # tasks
    *_TASK.rate_and_total("dropped-records", "Records that were skipped, for any reason"),
    _TASK.gauge("active-buffer-count", "Records in the input buffer."),
    _TASK.gauge("input-buffer-bytes-total", "Estimated size of the input buffer, in bytes."),
    _TASK.gauge("cache-size-bytes-total", "Memory that live values of the task's stores take, in bytes."),
    _TASK.gauge("stream-time", "Greatest timestamp processed, in milliseconds; -1 at first.", ours=True),
    _TASK.gauge(
        "uncommitted-bytes", "Estimated size of what stores and operators hold until the next commit.", ours=True
    ),
    *_TASK_DEBUG.latency("process", "a run of records"),
    *_TASK_DEBUG.rate_and_total("process", "Records processed"),
    *_TASK_DEBUG.latency("punctuate", _PUNCTUATE[0]),
    *_TASK_DEBUG.rate_and_total("punctuate", _PUNCTUATE[1]),
    *_TASK_DEBUG.rate_and_total("commit", "Commits"),
    *_TASK_DEBUG.rate_and_total("enforced-processing", "Runs although an input had no record"),
    *_TASK_DEBUG.extremes("record-lateness", "How far records are behind stream time, in milliseconds"),
    _TASK_DEBUG.gauge("active-process-ratio", "Share of the processing time of the thread that the task takes."),
    *_TASK_OF_CLIENT.rate_and_total("restore", "Changelog records applied before the task could run"),
    *_TASK_OF_CLIENT.rate_and_total("update", "Changelog records applied to the standby task"),
    _TASK_OF_CLIENT.gauge("restore-remaining-records-total", "Changelog records that are still to be restored."),
    _TASK_OF_CLIENT.gauge("standby-lag", "Changelog records that the standby task has not applied yet.", ours=True),
    # nodes
    _NODE.counter("process-total", "Records of a source that were processed or dropped."),
    _NODE_OF_TOPIC.gauge("process-rate", "Records of a source that were processed, per second."),
    _NODE_OF_TOPIC.gauge("record-e2e-latency-avg", f"Mean {_AGE}"),
    _NODE_OF_TOPIC.gauge("record-e2e-latency-min", f"Least {_AGE}"),
    _NODE_OF_TOPIC.gauge("record-e2e-latency-max", f"Greatest {_AGE}"),
    _NODE.by("reason").counter(
        "dropped-records-by-reason-total", "Records that an operator skipped, by reason.", ours=True
    ),
    _NODE.by("child-node-id")
    .debug()
    .counter("forwarded-records-total", "Records that an operator forwarded to a child.", ours=True),
    _Scope(NODE, ("thread-id", "processor-node-id"), RecordingLevel.DEBUG).gauge(
        "active-ratio", "Estimated share of the thread's time that an operator takes.", ours=True
    ),
    *_NODE.debug().rate_and_total("suppression-emit", "Updates that a suppress operator has emitted"),
    *_NODE.debug().rate_and_total("window-aggregate-final-emit", "Final results of windows"),
    # topics
    _CONSUMED.counter("records-consumed-total", "Records of a topic that a source has processed."),
    _PRODUCED.counter("records-produced-total", "Records that sinks wrote to a topic, repartition topics included."),
    _CONSUMED.counter("bytes-consumed-total", f"Bytes {_BYTES}"),
    _PRODUCED.counter("bytes-produced-total", f"Bytes {_BYTES}"),
    _PARTITION.gauge("records-lag", "Records of a partition that are not processed yet."),
    _PARTITION.gauge(
        "records-lag-ms",
        "Age of the last processed record of a partition, in milliseconds; 0 if no record is left to process.",
        ours=True,
    ),
    # stores
    *(template for name, events in _OPERATIONS.items() for template in _operation(name, events)),
    *_STORE.extremes(
        "suppression-buffer-count", "Updates in the buffer of a suppress operator, after runs and commits"
    ),
    *_STORE.extremes(
        "suppression-buffer-size", "Bytes of updates in the buffer of a suppress operator, after runs and commits"
    ),
    _CACHE.gauge("hit-ratio-avg", "Share of the look-ups in a store that needed no read of RocksDB."),
    _CACHE.gauge("hit-ratio-min", "Least share, in a run, of the look-ups in a store that needed no read of RocksDB."),
    _CACHE.gauge(
        "hit-ratio-max", "Greatest share, in a run, of the look-ups in a store that needed no read of RocksDB."
    ),
    *(_ROCKSDB_STORE.gauge(name, f"{meaning} As of the last commit.") for name, meaning in _PROPERTIES.items()),
    _ROCKSDB_STORE.gauge(
        "estimate-live-data-size", "Bytes of a store that are in use, by RocksDB's estimate.", ours=True
    ),
    *(
        template
        for name, events in _STATISTICS.items()
        for template in _DATABASE.rate_and_total(name, f"{events}, for all stores of a task")
    ),
    *(_DATABASE.gauge(name, f"Share of look-ups that {place} answered.") for name, place in _HIT_RATIOS.items()),
    *_DATABASE.extremes("memtable-flush-time", "Milliseconds to write a memtable"),
    *_DATABASE.extremes("compaction-time", "Milliseconds of a compaction"),
    _DATABASE.counter("write-stall-duration-total", "Milliseconds for which RocksDB blocked writes."),
    _DATABASE.counter("number-file-errors-total", "Errors of RocksDB's files."),
    # state updater
    _UPDATER.gauge("active-restoring-tasks", "Active tasks that are being restored."),
    _UPDATER.gauge("standby-updating-tasks", "Standby tasks that are being updated."),
    _UPDATER.gauge("active-restore-ratio", "Share of the updater's time that restoring active tasks takes."),
    _UPDATER.gauge("standby-update-ratio", "Share of the updater's time that updating standby tasks takes."),
    _UPDATER.gauge("idle-ratio", "Share of the updater's time in which it does nothing."),
    _UPDATER.rate("restore-records", "Changelog records applied"),
    _UPDATER.rate("restore-call", "Batches of changelog records applied"),
    _UPDATER.counter("restore-records-total", "Changelog records applied to stores.", ours=True),
    _UPDATER.by("task-id", "store").gauge(
        "restore-remaining-records-total", "Changelog records of a store that are still to be restored.", ours=True
    ),
    # sensors of processors: the name of a sensor is a label, because not every name is valid for a metric
    _NODE.by("sensor").gauge("sensor-total", "Sum of the values of a processor's sensor.", ours=True),
    _NODE.by("sensor").gauge("sensor-count", "Number of the values of a processor's sensor.", ours=True),
    _NODE.by("sensor").gauge("sensor-max", "Greatest value of a processor's sensor.", ours=True),
)
TEMPLATES: dict[tuple[str, str], MetricTemplate] = {(template.group, template.name): template for template in _METRICS}
"""Every metric, by group and name."""
