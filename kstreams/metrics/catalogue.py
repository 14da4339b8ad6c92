"""Which metrics there are: group, name, kind and meaning, as in Kafka Streams wherever it has them."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import chain
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
    """How the values of a metric move."""

    COUNTER = "counter"  # only up, from the start of the process
    GAUGE = "gauge"  # up and down
    TEXT = "text"


class MetricName(NamedTuple):
    """What identifies a value. Kafka: `MetricName`.

    Parameters
    ----------
    group, name : str
    tags : tuple of (str, str)
        Of which thread, task, node, topic or store it is.

    Examples
    --------
    >>> MetricName("stream-thread-metrics", "process-total", (("thread-id", "app-StreamThread-1"),)).tag("thread-id")
    'app-StreamThread-1'
    """

    group: str
    name: str
    tags: tuple[tuple[str, str], ...] = ()

    def tag(self, name: str) -> str | None:
        """The value of a tag; None where it has none of this name."""
        return dict(self.tags).get(name)


class MetricTemplate(NamedTuple):
    """A metric that there is once for each thread, task and so on; `ours` where Kafka Streams has none like it."""

    group: str
    name: str
    kind: MetricKind
    description: str
    ours: bool = False


_GAUGE = MetricKind.GAUGE
_COUNTER = MetricKind.COUNTER
_TEXT = MetricKind.TEXT


_DEBUG = " (DEBUG)"


def _latency(group: str, name: str, turn: str, level: str = "") -> Iterator[MetricTemplate]:
    yield MetricTemplate(group, f"{name}-latency-avg", _GAUGE, f"Mean time of {turn}, in milliseconds{level}.")
    yield MetricTemplate(group, f"{name}-latency-max", _GAUGE, f"Longest time of {turn}, in milliseconds{level}.")


def _flow(group: str, name: str, counted: str, level: str = "") -> Iterator[MetricTemplate]:
    yield MetricTemplate(group, f"{name}-rate", _GAUGE, f"{counted}, per second{level}.")
    yield MetricTemplate(group, f"{name}-total", _COUNTER, f"{counted}, since the start{level}.")


def _extremes(group: str, name: str, values: str, level: str = "") -> Iterator[MetricTemplate]:
    yield MetricTemplate(group, f"{name}-avg", _GAUGE, f"{values}: the mean{level}.")
    yield MetricTemplate(group, f"{name}-max", _GAUGE, f"{values}: the most{level}.")


def _of_activity(name: str, turn: str, counted: str) -> Iterator[MetricTemplate]:
    yield from _latency(THREAD, name, turn)
    yield from _flow(THREAD, name, counted)
    yield MetricTemplate(THREAD, f"{name}-ratio", _GAUGE, f"The part of the thread's time that goes into {turn}.")


def _of_client() -> Iterator[MetricTemplate]:
    yield MetricTemplate(CLIENT, "version", _TEXT, "Version of kstreams.")
    yield MetricTemplate(CLIENT, "application-id", _TEXT, "Id of the application.")
    yield MetricTemplate(CLIENT, "state", _TEXT, "State of the client: CREATED, REBALANCING, RUNNING and so on.")
    yield MetricTemplate(CLIENT, "alive-stream-threads", _GAUGE, "Stream threads that run or start.")
    yield MetricTemplate(CLIENT, "failed-stream-threads", _COUNTER, "Stream threads that an error has ended.")
    yield MetricTemplate(
        CLIENT, "stalls-total", _COUNTER, "Tasks seen without progress for task.timeout.ms.", ours=True
    )
    yield MetricTemplate(CLIENT, "rebuilds-total", _COUNTER, "Tasks whose damaged stores were rebuilt.", ours=True)
    yield MetricTemplate(
        CLIENT, "reassigned-total", _COUNTER, "How often a task came back to a process that had it before.", ours=True
    )


def _of_threads() -> Iterator[MetricTemplate]:
    yield from _of_activity("poll", "a poll of the consumer", "Polls")
    yield from _of_activity("process", "a run of records", "Records processed")
    yield from _of_activity("punctuate", "calling punctuators that are due", "Rounds with a punctuator that was due")
    yield from _of_activity("commit", "a commit of all tasks", "Commits")
    yield from _extremes(THREAD, "poll-records", "Records of a poll")
    yield from _extremes(THREAD, "process-records", "Records of a run")
    yield from _flow(THREAD, "task-created", "Tasks that the thread was given")
    yield from _flow(THREAD, "task-closed", "Tasks that it gave back")
    yield MetricTemplate(THREAD, "blocked-time-ns-total", _COUNTER, "Time spent in polls and commits, in nanoseconds.")
    yield MetricTemplate(THREAD, "thread-start-time", _GAUGE, "When it was made, in milliseconds since 1970.")
    yield MetricTemplate(THREAD, "state", _TEXT, "State of the thread.")


def _of_tasks() -> Iterator[MetricTemplate]:
    yield from _flow(TASK, "dropped-records", "Records that were skipped, for whatever reason")
    yield MetricTemplate(TASK, "active-buffer-count", _GAUGE, "Records that wait in memory.")
    yield MetricTemplate(TASK, "input-buffer-bytes-total", _GAUGE, "Size of what waits in memory, in bytes, roughly.")
    yield MetricTemplate(TASK, "cache-size-bytes-total", _GAUGE, "What live values of its stores take in memory.")
    yield MetricTemplate(TASK, "stream-time", _GAUGE, "Greatest timestamp processed, in ms; -1 at first.", ours=True)
    yield MetricTemplate(
        TASK, "uncommitted-bytes", _GAUGE, "What stores and operators hold until the next commit, roughly.", ours=True
    )
    for name, turn, counted in (
        ("process", "a run of records", "Records processed"),
        ("punctuate", "calling punctuators that are due", "Rounds with a punctuator that was due"),
    ):
        yield from _latency(TASK, name, turn, _DEBUG)
        yield from _flow(TASK, name, counted, _DEBUG)
    yield from _flow(TASK, "commit", "Commits", _DEBUG)
    yield from _flow(TASK, "enforced-processing", "Runs although an input had no record", _DEBUG)
    yield from _extremes(TASK, "record-lateness", "How far records are behind stream time, in milliseconds", _DEBUG)
    yield MetricTemplate(
        TASK, "active-process-ratio", _GAUGE, f"The part that it takes of its thread's time for processing{_DEBUG}."
    )
    yield from _flow(TASK, "restore", "Changelog records applied before the task could run")
    yield from _flow(TASK, "update", "Changelog records applied to its standby")
    yield MetricTemplate(TASK, "restore-remaining-records-total", _GAUGE, "Changelog records that its stores lack.")
    yield MetricTemplate(TASK, "standby-lag", _GAUGE, "Changelog records that its standby here lacks.", ours=True)


def _of_nodes() -> Iterator[MetricTemplate]:
    yield MetricTemplate(NODE, "process-total", _COUNTER, "Records of a source that were processed or dropped.")
    yield MetricTemplate(NODE, "process-rate", _GAUGE, "Records of a source that were processed, per second.")
    for name, which in (("avg", "Mean"), ("min", "Least"), ("max", "Greatest")):
        meaning = f"{which} age of records, by their timestamps, when read and processed, or written by a sink; ms."
        meaning += " Of more than 32 at once, evenly spaced ones are looked at."
        yield MetricTemplate(NODE, f"record-e2e-latency-{name}", _GAUGE, meaning)
    yield MetricTemplate(
        NODE, "dropped-records-by-reason-total", _COUNTER, "Records that an operator skipped, by reason.", ours=True
    )
    yield MetricTemplate(
        NODE, "forwarded-records-total", _COUNTER, "Records that an operator passed to the next one (DEBUG).", ours=True
    )
    yield MetricTemplate(
        NODE, "active-ratio", _GAUGE, "The part of its thread's time that an operator takes (DEBUG).", ours=True
    )
    yield from _flow(NODE, "suppression-emit", "Updates that a suppress has let go", _DEBUG)
    yield from _flow(NODE, "window-aggregate-final-emit", "Final results of windows", _DEBUG)


def _of_topics() -> Iterator[MetricTemplate]:
    yield MetricTemplate(TOPIC, "records-consumed-total", _COUNTER, "Records of a topic that a source has processed.")
    yield MetricTemplate(
        TOPIC, "records-produced-total", _COUNTER, "Records written to a topic, also of repartition, by sinks."
    )
    for name, whose in (("consumed", "of them"), ("produced", "of those that are written")):
        meaning = f"Bytes of keys and values {whose}, roughly: as columns take them in memory."
        yield MetricTemplate(TOPIC, f"bytes-{name}-total", _COUNTER, meaning)
    yield MetricTemplate(CONSUMER, "records-lag", _GAUGE, "Records of a partition that are not processed yet.")
    meaning = "Age of the last record that was processed of a partition; 0 when none waits."
    yield MetricTemplate(CONSUMER, "records-lag-ms", _GAUGE, meaning, ours=True)


_OPERATIONS = {
    "get": "Look-ups of a key",
    "put": "Writes of a key",
    "put-if-absent": "Writes of keys that are not there",
    "put-all": "Writes of several keys",
    "delete": "Deletions of a key",
    "remove": "Deletions of a session",
    "range": "Scans between two keys",
    "prefix-scan": "Scans of a prefix",
    "all": "Scans of everything",
    "fetch": "Reads of windows or sessions",
    "flush": "Writes of committed changes to disk",
    "restore": "Batches of a changelog",
}


def _of_stores() -> Iterator[MetricTemplate]:
    for name, counted in _OPERATIONS.items():
        yield from _latency(STATE, name, f"'{name}' of a store; a scan lasts until its end", _DEBUG)
        yield MetricTemplate(STATE, f"{name}-rate", _GAUGE, f"{counted}, per second{_DEBUG}.")
    for name, values in (("count", "Updates"), ("size", "Bytes of updates")):
        meaning = f"{values} that a suppress holds back, after runs and commits"
        yield from _extremes(STATE, f"suppression-buffer-{name}", meaning, _DEBUG)
    for name, which in (("avg", "The part"), ("min", "The least part, in one run,"), ("max", "The greatest part")):
        meaning = f"{which} of look-ups in a store that needed no read of RocksDB (DEBUG)."
        yield MetricTemplate(CACHE, f"hit-ratio-{name}", _GAUGE, meaning)


_PROPERTIES = {
    "total-sst-files-size": "Bytes of a store's files.",
    "live-sst-files-size": "Bytes of those files that are in use.",
    "estimate-num-keys": "Rows of a store, by RocksDB's estimate.",
    "num-immutable-mem-table": "Memtables that wait to be written.",
    "cur-size-active-mem-table": "Bytes of the memtable that is written to.",
    "cur-size-all-mem-tables": "Bytes of memtables that are not written yet.",
    "size-all-mem-tables": "Bytes of all memtables, those with them that readers hold.",
    "num-entries-active-mem-table": "Entries of the memtable that is written to.",
    "num-entries-imm-mem-tables": "Entries of memtables that wait to be written.",
    "num-deletes-active-mem-table": "Deletions among the first.",
    "num-deletes-imm-mem-tables": "Deletions among the second.",
    "mem-table-flush-pending": "1 while a memtable waits to be written.",
    "num-running-flushes": "Memtables that are being written.",
    "compaction-pending": "1 while a compaction waits.",
    "num-running-compactions": "Compactions under way.",
    "estimate-pending-compaction-bytes": "Bytes that compactions have to rewrite, by RocksDB's estimate.",
    "num-live-versions": "Versions of the set of files that somebody holds.",
    "block-cache-capacity": "Bytes that the block cache of the process may take.",
    "block-cache-usage": "Bytes that it takes.",
    "block-cache-pinned-usage": "Bytes of it that cannot be given up now.",
    "estimate-table-readers-mem": "Bytes of indices and filters outside of the block cache.",
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


def _of_rocksdb() -> Iterator[MetricTemplate]:
    for name, meaning in _PROPERTIES.items():
        yield MetricTemplate(STATE, name, _GAUGE, f"{meaning} As of the last commit.")
    yield MetricTemplate(
        STATE, "estimate-live-data-size", _GAUGE, "Bytes of a store that are in use, by RocksDB's estimate.", ours=True
    )
    for name, counted in _STATISTICS.items():
        yield from _flow(STATE, name, f"{counted}, for all stores of a task", _DEBUG)
    for name, where in _HIT_RATIOS.items():
        yield MetricTemplate(STATE, name, _GAUGE, f"The part of look-ups that {where} have answered{_DEBUG}.")
    yield from _extremes(STATE, "memtable-flush-time", "Milliseconds to write a memtable", _DEBUG)
    yield from _extremes(STATE, "compaction-time", "Milliseconds of a compaction", _DEBUG)
    yield MetricTemplate(
        STATE, "write-stall-duration-total", _COUNTER, f"Milliseconds for which RocksDB let writes wait{_DEBUG}."
    )
    yield MetricTemplate(STATE, "number-file-errors-total", _COUNTER, f"Errors of RocksDB's files{_DEBUG}.")


def _of_updater() -> Iterator[MetricTemplate]:
    yield MetricTemplate(UPDATER, "active-restoring-tasks", _GAUGE, "Tasks that wait for their stores.")
    yield MetricTemplate(UPDATER, "standby-updating-tasks", _GAUGE, "Tasks whose stores are kept up to date.")
    yield MetricTemplate(UPDATER, "active-restore-ratio", _GAUGE, "The part of its time that goes into the first.")
    yield MetricTemplate(UPDATER, "standby-update-ratio", _GAUGE, "The part of its time that goes into the second.")
    yield MetricTemplate(UPDATER, "idle-ratio", _GAUGE, "What is left of its time.")
    yield MetricTemplate(UPDATER, "restore-records-rate", _GAUGE, "Changelog records applied, per second.")
    yield MetricTemplate(UPDATER, "restore-call-rate", _GAUGE, "Batches of changelog records applied, per second.")
    yield MetricTemplate(UPDATER, "restore-records-total", _COUNTER, "Changelog records applied to stores.", ours=True)
    yield MetricTemplate(
        UPDATER, "restore-remaining-records-total", _GAUGE, "Changelog records that a store still lacks.", ours=True
    )


_ALL = chain(
    *(_of_client(), _of_threads(), _of_tasks(), _of_nodes(), _of_topics(), _of_stores(), _of_rocksdb(), _of_updater())
)
TEMPLATES: dict[tuple[str, str], MetricTemplate] = {(template.group, template.name): template for template in _ALL}
"""Every metric, by group and name."""
