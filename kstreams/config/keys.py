"""The table of configuration keys: name, kind, default and meaning. The reference page in the docs is made from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kstreams.config.kinds import (
    FLAG,
    OBJECT,
    PATH,
    SERVERS,
    SIZE,
    TEXT,
    TOPIC_PREFIX,
    Kind,
    choice,
    duration,
    handler,
    integer,
    words,
)


@dataclass(frozen=True, slots=True)
class Key:
    """One configuration key.

    Parameters
    ----------
    name : str
        Kafka Streams' name, with dots.
    kind : Kind
        How values are read and checked.
    default : object
        The value when nobody says anything; None means unset.
    doc : str
        One sentence for the reference page.
    used : bool
        False for a key of Kafka Streams that is accepted, so that existing configurations run,
        but changes nothing here.
    own : bool
        True for a key that Kafka Streams does not have.
    """

    name: str
    kind: Kind
    default: Any
    doc: str
    used: bool = True
    own: bool = False


def _unused(name: str, reason: str) -> Key:
    return Key(name, OBJECT, None, f"Not used by this engine: {reason}.", used=False)


_USED = (
    Key(
        "application.id",
        TOPIC_PREFIX,
        None,
        "Name of the application: starts its internal topics, is its group and its state folder.",
    ),
    Key(
        "bootstrap.servers",
        SERVERS,
        None,
        "Reserved for a Kafka cluster, refused until then: topics live in `log.dir`.",
    ),
    Key("log.dir", PATH, ".kstreams/log", "Folder of the embedded log.", own=True),
    Key(
        "log.durability",
        choice("none", "os", "fsync"),
        "os",
        "What an acknowledged record of the embedded log survives: `none` this process's memory only, "
        "`os` the death of the process, `fsync` the loss of power.",
        own=True,
    ),
    Key(
        "state.dir",
        PATH,
        ".kstreams/state",
        "Folder of the state stores; one process at a time. Kafka Streams: a folder under the temporary directory.",
    ),
    Key("num.stream.threads", integer(1, 1024), 1, "Number of stream threads."),
    Key(
        "processing.guarantee",
        choice("at_least_once", "exactly_once_v2"),
        "at_least_once",
        "Whether outputs, state and input offsets commit as one.",
    ),
    Key("commit.interval.ms", duration(0), 30_000, "Time between commits; 100 under exactly_once_v2 unless set."),
    Key(
        "statestore.cache.max.bytes",
        SIZE,
        10_485_760,
        "Record cache of all threads: with it a table forwards the last update per key at each commit, "
        "with 0 every update.",
    ),
    Key(
        "async.concurrency",
        integer(1),
        32,
        "Most calls of an async function that one task makes at once, where the operator does not say.",
        own=True,
    ),
    Key(
        "async.timeout.ms",
        duration(-1),
        60_000,
        "How long a call of an async function may take before it fails, where the operator does not say; -1: for ever.",
        own=True,
    ),
    Key(
        "idle.timeout.ms",
        duration(-1),
        -1,
        "After how long without records a source is idle, where it does not say: stream time then goes on with the "
        "wall clock, and what waits for it comes out. -1: event time alone decides, as in Kafka Streams.",
        own=True,
    ),
    Key(
        "columns.min.rows",
        integer(0),
        200,
        "Batches with fewer records go record by record where columns could take them; a large number turns columns "
        "off. The results are the same.",
        own=True,
    ),
    Key(
        "memory.max.bytes",
        SIZE,
        768 * 1024**2,
        "What data may take in the memory of a process, beside Python and its libraries. A third is for live values of "
        "stores and what waits in buffers, a twelfth each for uncommitted changes, RocksDB's cache, its write buffers, "
        "and records on their way; the rest is for what cannot be counted. What exceeds its share goes to RocksDB, is "
        "committed early or is read later; only stores in memory cannot give way.",
        own=True,
    ),
    Key(
        "statestore.live.max.bytes",
        SIZE,
        None,
        "Memory for live values that stores keep over RocksDB, all tasks together, where a third of "
        "`memory.max.bytes` is too much.",
        own=True,
    ),
    Key(
        "statestore.uncommitted.max.bytes",
        SIZE,
        None,
        "Uncommitted changes of all tasks beyond which a commit is made early, where a twelfth of `memory.max.bytes` "
        "is too much.",
        own=True,
    ),
    Key(
        "buffered.records.per.partition",
        integer(1),
        1000,
        "Records buffered per partition beyond which it is not read further.",
    ),
    Key(
        "max.poll.records",
        integer(1),
        50_000,
        "Most records taken from the log at once; a batch is the unit of columnar work. Kafka Streams: 1000.",
        own=True,
    ),
    Key(
        "max.task.idle.ms",
        duration(-1),
        0,
        "How long a task waits for an input that is empty and has no lag, so that it picks records by "
        "time; -1: never wait.",
    ),
    Key(
        "metadata.max.age.ms",
        duration(1),
        300_000,
        "How often a running application looks for new topics that match the pattern of a source.",
    ),
    Key("poll.ms", duration(0), 100, "How long a thread waits for records when it has nothing to do."),
    Key("client.id", TEXT, "", "Start of thread names; default: the application id."),
    Key("default.key.serde", OBJECT, None, "Type or serde of keys of sources that declare none; for StreamsBuilder."),
    Key(
        "default.value.serde", OBJECT, None, "Type or serde of values of sources that declare none; for StreamsBuilder."
    ),
    Key(
        "default.timestamp.extractor",
        OBJECT,
        None,
        "Function (record, partition_time) -> event time in ms; default: the record's own; for StreamsBuilder.",
    ),
    Key(
        "default.dsl.store",
        choice("rocksDB", "in_memory"),
        "rocksDB",
        "Where tables that name no store keep their data; for StreamsBuilder.",
    ),
    Key(
        "topology.optimization",
        words("none", "all", "reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join"),
        "none",
        "`none`, `all`, or some of `reuse.ktable.source.topics`, `merge.repartition.topics` and "
        "`single.store.self.join`, with commas between.",
    ),
    Key(
        "ensure.explicit.internal.resource.naming",
        FLAG,
        False,
        "Whether a topology is refused in which stores or repartition topics have generated names.",
    ),
    Key(
        "repartition.purge.interval.ms",
        duration(0),
        30_000,
        "Time between deletions of processed records from repartition topics.",
    ),
    Key(
        "windowstore.changelog.additional.retention.ms",
        duration(0),
        86_400_000,
        "Added to a window store's retention for its changelog topic.",
    ),
    Key("log.summary.interval.ms", duration(-1), 120_000, "Time between summary lines in the log; 0 or less: none."),
    Key(
        "task.timeout.ms",
        duration(0),
        300_000,
        "How long a task may make no progress before it is reported as stalled, and how long a write that topics "
        "refuse for the time being is tried again.",
    ),
    Key(
        "deserialization.exception.handler",
        handler("fail", "continue"),
        "fail",
        "What happens when a key or value does not decode: `fail`, `continue` without the record, or a function.",
    ),
    Key(
        "processing.exception.handler",
        handler("fail", "continue"),
        "fail",
        "What happens when an operator or punctuator raises: `fail`, `continue` without what follows from it, or a "
        "function.",
    ),
    Key(
        "processing.exception.handler.global.enabled",
        FLAG,
        False,
        "Whether `processing.exception.handler` is also asked by global tables; else they fail.",
    ),
    Key(
        "production.exception.handler",
        handler("fail", "continue", "retry"),
        "fail",
        "What happens when a record does not encode or a topic refuses it: `fail`, `continue` without it, `retry` "
        "what may succeed later, or a function.",
    ),
    Key(
        "errors.deadletterqueue.topic.name",
        TEXT,
        None,
        "Topic that gets the input record of every failure, as it was read; it must exist.",
    ),
    Key(
        "errors.deadletterqueue.dropped.records",
        FLAG,
        False,
        "Whether records that operators drop (late, without a key) also go to the dead-letter topic.",
        own=True,
    ),
)

_UNUSED = (
    _unused("acceptable.recovery.lag", "there are no standby tasks"),
    _unused("allow.os.group.write.access", "state folders are for their owner only"),
    _unused("application.server", "questions go to the owning process"),
    _unused("built.in.metrics.version", "there is one version of metrics"),
    _unused("connections.max.idle.ms", "set it under `consumer.` or `producer.`"),
    _unused("default.client.supplier", "topics are reached through kstreams.log"),
    _unused("dsl.store.format", "headers are not kept in stores"),
    _unused("dsl.store.suppliers.class", "name the store with `Materialized(store=…)`"),
    _unused("enable.metrics.push", "metrics are read from this process"),
    _unused("enable.transactional.statestores", "stores always hold committed data only"),
    _unused("group.protocol", "one process runs an application"),
    _unused("max.warmup.replicas", "there are no standby tasks"),
    _unused("metric.reporters", "metrics are read from this process"),
    _unused("metrics.num.samples", "metrics are counters"),
    _unused("metrics.recording.level", "all metrics are recorded"),
    _unused("metrics.sample.window.ms", "metrics are counters"),
    _unused("num.standby.replicas", "there are no standby tasks"),
    _unused("probing.rebalance.interval.ms", "there are no standby tasks"),
    _unused("processor.wrapper.class", "processors are not wrapped"),
    _unused("rack.aware.assignment.non_overlap_cost", "one process runs an application"),
    _unused("rack.aware.assignment.strategy", "one process runs an application"),
    _unused("rack.aware.assignment.tags", "one process runs an application"),
    _unused("rack.aware.assignment.traffic_cost", "one process runs an application"),
    _unused("receive.buffer.bytes", "set it under `consumer.` or `producer.`"),
    _unused("reconnect.backoff.max.ms", "set it under `consumer.` or `producer.`"),
    _unused("reconnect.backoff.ms", "set it under `consumer.` or `producer.`"),
    _unused("replication.factor", "the embedded log holds one copy"),
    _unused("request.timeout.ms", "set it under `consumer.` or `producer.`"),
    _unused("retry.backoff.ms", "set it under `consumer.` or `producer.`"),
    _unused("rocksdb.config.setter", "RocksDB is tuned by this engine"),
    _unused("security.protocol", "set it under `consumer.` and `producer.`"),
    _unused("send.buffer.bytes", "set it under `consumer.` or `producer.`"),
    _unused("state.cleanup.delay.ms", "unowned state is removed by `--reset` only"),
    _unused("state.cleanup.dir.max.age.ms", "unowned state is removed by `--reset` only"),
    _unused("task.assignor.class", "tasks are spread over the threads of one process"),
    _unused("topology.description.push.enabled", "topologies are not recorded by brokers"),
    _unused("upgrade.from", "there is no older version"),
    _unused("window.size.ms", "windowed serdes know their window"),
    _unused("windowed.inner.class.serde", "windowed serdes know their inner serde"),
)

KEYS: dict[str, Key] = {key.name: key for key in (*_USED, *_UNUSED)}
"""Every known key by name."""

OLD_NAMES = {"cache.max.bytes.buffering": "statestore.cache.max.bytes"}
"""Former names that Kafka Streams still accepts."""

PREFIXES = (
    "main.consumer.",
    "restore.consumer.",
    "global.consumer.",
    "consumer.",
    "producer.",
    "admin.",
    "topic.",
    "spark.",
)
"""Keys that start with one of these pass through, unread, to clients, internal topics or Spark."""
