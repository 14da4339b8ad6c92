"""Which metrics there are: group, name, kind and meaning, as in Kafka Streams wherever it has them."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import chain
from typing import NamedTuple

CLIENT, THREAD, TASK = "stream-metrics", "stream-thread-metrics", "stream-task-metrics"
NODE, TOPIC, STATE = "stream-processor-node-metrics", "stream-topic-metrics", "stream-state-metrics"
UPDATER, CONSUMER = "stream-state-updater-metrics", "consumer-fetch-manager-metrics"
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


_GAUGE, _COUNTER, _TEXT = MetricKind.GAUGE, MetricKind.COUNTER, MetricKind.TEXT


def _of_activity(name: str, turn: str, counted: str) -> Iterator[MetricTemplate]:
    yield MetricTemplate(THREAD, f"{name}-latency-avg", _GAUGE, f"Mean time of {turn}, in milliseconds.")
    yield MetricTemplate(THREAD, f"{name}-latency-max", _GAUGE, f"Longest time of {turn}, in milliseconds.")
    yield MetricTemplate(THREAD, f"{name}-rate", _GAUGE, f"{counted}, per second.")
    yield MetricTemplate(THREAD, f"{name}-total", _COUNTER, f"{counted}, since the start.")
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
    yield MetricTemplate(THREAD, "poll-records-avg", _GAUGE, "Mean number of records of a poll.")
    yield MetricTemplate(THREAD, "poll-records-max", _GAUGE, "Greatest number of records of a poll.")
    yield MetricTemplate(THREAD, "process-records-avg", _GAUGE, "Mean number of records of a run.")
    yield MetricTemplate(THREAD, "process-records-max", _GAUGE, "Greatest number of records of a run.")
    yield MetricTemplate(THREAD, "task-created-total", _COUNTER, "Tasks that the thread was given.")
    yield MetricTemplate(THREAD, "task-closed-total", _COUNTER, "Tasks that it gave back.")
    yield MetricTemplate(THREAD, "thread-start-time", _GAUGE, "When it was made, in milliseconds since 1970.")
    yield MetricTemplate(THREAD, "state", _TEXT, "State of the thread.")


def _of_tasks() -> Iterator[MetricTemplate]:
    yield MetricTemplate(TASK, "dropped-records-total", _COUNTER, "Records that were skipped, for whatever reason.")
    yield MetricTemplate(TASK, "dropped-records-rate", _GAUGE, "Records that were skipped, per second.")
    yield MetricTemplate(TASK, "active-buffer-count", _GAUGE, "Records that wait in memory.")
    yield MetricTemplate(TASK, "input-buffer-bytes-total", _GAUGE, "Size of what waits in memory, in bytes, roughly.")
    yield MetricTemplate(TASK, "stream-time", _GAUGE, "Greatest timestamp processed, in ms; -1 at first.", ours=True)
    yield MetricTemplate(
        TASK, "uncommitted-bytes", _GAUGE, "What stores and operators hold until the next commit, roughly.", ours=True
    )


def _of_nodes() -> Iterator[MetricTemplate]:
    yield MetricTemplate(NODE, "process-total", _COUNTER, "Records of a source that were processed or dropped.")
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
    yield MetricTemplate(NODE, "suppression-emit-total", _COUNTER, "Updates that a suppress has let go (DEBUG).")
    yield MetricTemplate(NODE, "suppression-emit-rate", _GAUGE, "The same, per second (DEBUG).")
    yield MetricTemplate(TOPIC, "records-consumed-total", _COUNTER, "Records of a topic that a source has processed.")
    yield MetricTemplate(
        TOPIC, "records-produced-total", _COUNTER, "Records written to a topic, also of repartition, by sinks."
    )
    for name, whose in (("consumed", "of them"), ("produced", "of those that are written")):
        meaning = f"Bytes of keys and values {whose}, roughly: as columns take them in memory."
        yield MetricTemplate(TOPIC, f"bytes-{name}-total", _COUNTER, meaning)
    for name, held in (("count", "Updates"), ("size", "Bytes of updates")):
        meaning = f"{held} that a suppress holds back, after runs and commits"
        yield MetricTemplate(STATE, f"suppression-buffer-{name}-avg", _GAUGE, f"{meaning}: the mean (DEBUG).")
        yield MetricTemplate(STATE, f"suppression-buffer-{name}-max", _GAUGE, f"{meaning}: the most (DEBUG).")
    yield MetricTemplate(STATE, "total-sst-files-size", _GAUGE, "Size of a task's stores on disk, in bytes.")
    yield MetricTemplate(STATE, "estimate-num-keys", _GAUGE, "Rows of a store on disk, by RocksDB's estimate.")
    yield MetricTemplate(
        STATE, "estimate-live-data-size", _GAUGE, "Bytes of a store that are in use, by RocksDB's estimate.", ours=True
    )


def _of_stores() -> Iterator[MetricTemplate]:
    yield MetricTemplate(UPDATER, "active-restoring-tasks", _GAUGE, "Tasks that wait for their stores.")
    yield MetricTemplate(UPDATER, "standby-updating-tasks", _GAUGE, "Tasks whose stores are kept up to date.")
    yield MetricTemplate(UPDATER, "restore-records-total", _COUNTER, "Changelog records applied to stores.", ours=True)
    yield MetricTemplate(
        UPDATER, "restore-remaining-records-total", _GAUGE, "Changelog records that a store still lacks.", ours=True
    )
    yield MetricTemplate(CONSUMER, "records-lag", _GAUGE, "Records of a partition that are not processed yet.")
    yield MetricTemplate(
        CONSUMER,
        "records-lag-ms",
        _GAUGE,
        "Age of the last record that was processed of a partition; 0 when none waits.",
        ours=True,
    )
    for name, which in (("avg", "The part"), ("min", "The least part, in one run,"), ("max", "The greatest part")):
        meaning = f"{which} of look-ups in a store that needed no read of RocksDB (DEBUG)."
        yield MetricTemplate(CACHE, f"hit-ratio-{name}", _GAUGE, meaning)


_ALL = chain(_of_client(), _of_threads(), _of_tasks(), _of_nodes(), _of_stores())
TEMPLATES: dict[tuple[str, str], MetricTemplate] = {(each.group, each.name): each for each in _ALL}
"""Every metric, by group and name."""
