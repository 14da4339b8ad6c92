"""The configuration keys: name, kind, default and meaning. The reference page is generated from this list."""

from __future__ import annotations

from kstreams.config.key import Key
from kstreams.config.kinds import (
    ADDRESS,
    FLAG,
    NAMES,
    OBJECT,
    OFFSET_RESET,
    PATH,
    SERVERS,
    SIZE,
    SIZE_OR_NO_LIMIT,
    TEXT,
    TOPIC_PREFIX,
    choice,
    duration,
    handler,
    integer,
    name_of,
    words,
)
from kstreams.config.registry_keys import CURES, REGISTRY_KEYS, SHORT_NAMES, UNUSED_REGISTRY_KEYS


def _unused(name: str, reason: str) -> Key:
    return Key(name, OBJECT, None, f"Not used by this engine: {reason}.", used=False)


UNUSED = (
    _unused("allow.os.group.write.access", "only the owner may access state folders"),
    _unused("built.in.metrics.version", "there is one version of metrics"),
    _unused("config.providers", "a configuration is Python code, which may read values from any place"),
    _unused("connections.max.idle.ms", "set it under `consumer.` or `producer.`"),
    _unused("default.client.supplier", "topics are accessed through kstreams.log"),
    _unused("default.list.key.serde.inner", "a list has the serde of its type, such as `list[int]`"),
    _unused("default.list.key.serde.type", "a list has the serde of its type, such as `list[int]`"),
    _unused("default.list.value.serde.inner", "a list has the serde of its type, such as `list[int]`"),
    _unused("default.list.value.serde.type", "a list has the serde of its type, such as `list[int]`"),
    _unused(
        "dsl.store.format",
        "rows of stores that the DSL makes have no headers, in Kafka Streams 4.4 with `HEADERS` neither; results have "
        "those of `DEFAULT`",
    ),
    _unused("dsl.store.suppliers.class", "name the store with `Materialized(store=…)`"),
    _unused("enable.metrics.push", "metrics are read from this process"),
    _unused("group.protocol", "tasks are assigned through a topic of the application"),
    _unused("metadata.cluster.check.enable", "set the client's own key under `consumer.` or `producer.`"),
    _unused("metadata.recovery.rebootstrap.trigger.ms", "set it under `consumer.` or `producer.`"),
    _unused("metadata.recovery.strategy", "set it under `consumer.` or `producer.`"),
    _unused("metric.reporters", "metrics are read from this process"),
    _unused("probing.rebalance.interval.ms", "a task moves as soon as its warm-up is done"),
    _unused("processor.wrapper.class", "processors are not wrapped"),
    _unused("rack.aware.assignment.non_overlap_cost", "tasks are placed by state and number"),
    _unused("rack.aware.assignment.strategy", "tasks are placed by state and number"),
    _unused("rack.aware.assignment.traffic_cost", "tasks are placed by state and number"),
    _unused("receive.buffer.bytes", "set it under `consumer.` or `producer.`"),
    _unused("reconnect.backoff.max.ms", "set it under `consumer.` or `producer.`"),
    _unused("reconnect.backoff.ms", "set it under `consumer.` or `producer.`"),
    _unused("request.timeout.ms", "set it under `consumer.` or `producer.`"),
    _unused("retry.backoff.ms", "set it under `consumer.` or `producer.`"),
    _unused("rocksdb.config.setter", "the engine configures RocksDB"),
    _unused("send.buffer.bytes", "set it under `consumer.` or `producer.`"),
    _unused("state.cleanup.delay.ms", "only `--reset` removes state that is no longer owned"),
    _unused("state.cleanup.dir.max.age.ms", "only `--reset` removes state that is no longer owned"),
    _unused("task.assignor.class", "tasks are assigned as by the high-availability assignor"),
    _unused(
        "topology.description.push.enabled",
        "the client cannot send descriptions to brokers; `/v1/topology` has the description",
    ),
    _unused("upgrade.from", "there is no older version"),
    _unused("window.size.ms", "windowed serdes contain the size of their window"),
    _unused("windowed.inner.class.serde", "windowed serdes contain their inner serde"),
)


_USED = (
    Key(
        "application.id",
        TOPIC_PREFIX,
        None,
        "Name of the application: prefix of its internal topics, and name of its group and its state folder.",
    ),
    Key(
        "bootstrap.servers",
        SERVERS,
        None,
        "Brokers of a Kafka cluster, which keeps the topics; or the address of another home, such as `log:/data/log`. "
        "Without it, topics lie in `log.dir`.",
    ),
    Key("log.dir", PATH, ".kstreams/log", "Folder of the embedded log.", own=True),
    Key(
        "log.durability",
        choice("none", "os", "fsync"),
        "os",
        "Failures that acknowledged records of the embedded log survive. `none`: none is promised; `os`: the end of "
        "the process; `fsync`: also a power failure.",
        own=True,
    ),
    Key(
        "replication.factor",
        integer(-1, 32767),
        -1,
        "Copies of the topics that are created on Kafka; -1: the default of the brokers.",
    ),
    Key("security.protocol", TEXT, None, "Protocol of connections to Kafka: `PLAINTEXT`, `SSL` or `SASL_SSL`."),
    Key(
        "enable.ssl.certificate.verification",
        FLAG,
        None,
        "Whether certificates of brokers are checked; false is refused without `security.allow.insecure`.",
        own=True,
    ),
    Key(
        "security.allow.insecure",
        FLAG,
        None,
        "Allows passwords without encryption (`SASL_PLAINTEXT`) and brokers whose certificates are not checked.",
        own=True,
    ),
    Key(
        "state.dir",
        PATH,
        ".kstreams/state",
        "Folder of the state stores; each process on a machine has a part of it. Kafka Streams: a folder in the "
        "temporary directory.",
    ),
    Key("num.stream.threads", integer(1, 1024), 1, "Number of stream threads of a process."),
    Key(
        "num.standby.replicas",
        integer(0),
        0,
        "Number of further processes that keep the stores of each task up to date, to run it at once when its process "
        "ends.",
    ),
    Key(
        "max.warmup.replicas",
        integer(1),
        2,
        "Greatest number of tasks whose stores are restored at a time in processes that are to run them; until then "
        "they run where they are.",
    ),
    Key(
        "acceptable.recovery.lag",
        integer(0),
        10_000,
        "Greatest number of changelog records that a process may lack to be given a task at once.",
    ),
    Key(
        "rack.aware.assignment.tags",
        NAMES,
        (),
        "Names of client tags (`client.tag.*`): a standby is kept where they differ from those of its task's process.",
    ),
    Key(
        "processing.guarantee",
        choice("at_least_once", "exactly_once_v2"),
        "at_least_once",
        "Whether results may appear twice after a failure (`at_least_once`), or results, state and input offsets are "
        "committed in one transaction (`exactly_once_v2`).",
    ),
    Key("commit.interval.ms", duration(0), 30_000, "Time between commits; default under `exactly_once_v2`: 100."),
    Key(
        "shutdown.timeout.ms",
        duration(5_000),
        25_000,
        "Time after which a process that is to stop ends, though an operator has not returned; what it did since the "
        "last commit is then processed again.",
        own=True,
    ),
    Key(
        "first.commit.interval.ms",
        duration(0),
        100,
        "Time after which input is committed first, at the start and after a rest, so that first results come soon. "
        "Each interval is twice as long as the one before, up to `commit.interval.ms`.",
        own=True,
    ),
    Key(
        "statestore.cache.max.bytes",
        SIZE,
        10_485_760,
        "Size of the record cache of all threads. With the cache, a table forwards the last update of each key at each "
        "commit; with 0, every update.",
    ),
    Key(
        "async.concurrency",
        integer(1),
        32,
        "Greatest number of concurrent calls of an async function in one task, unless the operator sets it.",
        own=True,
    ),
    Key(
        "async.timeout.ms",
        duration(-1),
        60_000,
        "Time after which a call of an async function fails, unless the operator sets it; -1: never.",
        own=True,
    ),
    Key(
        "idle.timeout.ms",
        duration(-1),
        -1,
        "Time without records after which a source is idle, unless the source sets it. While sources are idle, stream "
        "time advances with the wall clock, and windows close. -1: records alone advance stream time, as in Kafka "
        "Streams.",
        own=True,
    ),
    Key(
        "max.timestamp.ahead",
        duration(-1),
        -1,
        "How far the timestamp of a record may lie ahead of the clock; those beyond would close windows too early, and "
        "are dropped. -1: any distance.",
        own=True,
    ),
    Key(
        "columns.min.rows",
        integer(0),
        200,
        "Batches with fewer records are processed record by record, not on columns. A large number turns columns off. "
        "The results are the same.",
        own=True,
    ),
    Key(
        "memory.max.bytes",
        SIZE,
        768 * 1024**2,
        "Memory for the data of a process, in addition to Python and its libraries. A third is for live values of "
        "stores and buffered records; a twelfth each is for uncommitted changes, the cache of RocksDB, its write "
        "buffers, and records in transit; the rest is for memory that cannot be counted. Data beyond its share is "
        "moved to RocksDB, committed early or read later. In-memory stores cannot be reduced.",
        own=True,
    ),
    Key(
        "statestore.live.max.bytes",
        SIZE,
        None,
        "Limit of the live values that stores of all tasks keep in front of RocksDB. Default and maximum: a third of "
        "`memory.max.bytes`, which grows with this limit unless it is set.",
        own=True,
    ),
    Key(
        "statestore.uncommitted.max.bytes",
        SIZE_OR_NO_LIMIT,
        None,
        "Size of the uncommitted changes of all tasks at which a commit is made early. Default and maximum: a twelfth "
        "of `memory.max.bytes`, which grows with this limit unless it is set. Kafka Streams: 64 MiB.",
    ),
    Key(
        "enable.transactional.statestores",
        FLAG,
        True,
        "Stores are always transactional: they hold writes back until the records that caused them are committed, so a "
        "crash under any guarantee loses no state and wipes none. `false` is accepted, and changes nothing.",
    ),
    Key(
        "default.interactive.query.isolation.level",
        name_of("read_uncommitted", "read_committed"),
        "read_uncommitted",
        "Data that queries in the process read unless they pass `isolation=`: all processed records, or the last "
        "commit.",
    ),
    Key(
        "buffered.records.per.partition",
        integer(1),
        1000,
        "Number of buffered records at which a partition is not read further.",
    ),
    Key(
        "max.poll.records",
        integer(1),
        50_000,
        "Greatest number of records read from the log at once. Columns are processed in these batches. Kafka "
        "Streams: 1000.",
        own=True,
    ),
    Key(
        "max.task.idle.ms",
        duration(-1),
        0,
        "Time for which a task waits for records of an empty input without lag, so that it can process records in the "
        "order of time; -1: it does not wait, nor for other tasks that read history.",
    ),
    Key("metadata.max.age.ms", duration(1), 300_000, "Time between checks for new topics that match a pattern."),
    Key("poll.ms", duration(0), 100, "Time for which a thread that is not busy waits for records."),
    Key(
        "application.server",
        ADDRESS,
        None,
        "Address at which other processes reach this one: `host:port` or `host:port/path`; `kstreams run --serve` "
        "sets it.",
    ),
    Key(
        "server.allowed.hosts",
        NAMES,
        (),
        "Names by which the server of queries may be addressed, beside those of this machine and of its address.",
        own=True,
    ),
    Key(
        "server.token.file",
        PATH,
        None,
        "File with the token of the server of queries, where processes on several machines share one. Default: a new "
        "token below `state.dir`.",
        own=True,
    ),
    Key(
        "server.readers.file",
        PATH,
        None,
        "TOML file of the readers that may query some stores over HTTP: a table for each reader, with `token` and "
        "`stores`.",
        own=True,
    ),
    Key("server.tail.topics", NAMES, (), "Topics whose last records the server of queries shows; `*`: all.", own=True),
    Key("server.tls.certificate", PATH, None, "Certificate of the server of queries, in a PEM file.", own=True),
    Key("server.tls.key", PATH, None, "Private key of that certificate, in a PEM file.", own=True),
    Key("client.id", TEXT, "", "Prefix of thread names, and client id for quotas; default: the application id."),
    Key(
        "default.key.serde",
        OBJECT,
        None,
        "Type or serde of the keys of sources that declare none; for `StreamsBuilder`.",
    ),
    Key(
        "default.value.serde",
        OBJECT,
        None,
        "Type or serde of the values of sources that declare none; for `StreamsBuilder`.",
    ),
    Key(
        "default.timestamp.extractor",
        OBJECT,
        None,
        "Function `(record, partition_time)` that returns the event time, in ms or as an aware datetime; default: the "
        "timestamp of the record; for `StreamsBuilder`.",
    ),
    Key(
        "default.dsl.store",
        choice("rocksDB", "in_memory"),
        "rocksDB",
        "Kind of store for tables that do not declare one; for `StreamsBuilder`.",
    ),
    Key(
        "topology.optimization",
        words("none", "all", "reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join"),
        "none",
        "`none`, `all`, or a comma-separated list of `reuse.ktable.source.topics`, `merge.repartition.topics` and "
        "`single.store.self.join`.",
    ),
    Key(
        "ensure.explicit.internal.resource.naming",
        FLAG,
        False,
        "Whether a topology with generated names of stores or repartition topics is refused.",
    ),
    Key(
        "repartition.purge.interval.ms",
        duration(0),
        30_000,
        "Time between deletions of processed records from repartition topics; on Spark, topics filled by DataFrames.",
    ),
    Key(
        "windowstore.changelog.additional.retention.ms",
        duration(0),
        86_400_000,
        "Added to a window store's retention for its changelog topic.",
    ),
    Key(
        "metrics.num.samples",
        integer(1),
        2,
        "Number of windows over which rates, averages and extremes of metrics are computed.",
    ),
    Key(
        "metrics.recording.level",
        choice("INFO", "DEBUG"),
        "INFO",
        "DEBUG also measures the share of time of each operator, by sampling stacks twenty times a second, the records "
        "that each operator forwards, and the share of look-ups in stores that need no read of RocksDB.",
    ),
    Key(
        "auto.offset.reset",
        OFFSET_RESET,
        None,
        "Where an application begins in a topic without committed offsets, unless the source sets `offset_reset=`: at "
        "the `earliest` record, after the `latest` record, nowhere (`none`: an error), or at the time that lies a "
        "duration before now. Also under `consumer.` and `main.consumer.`. Without it: `earliest`, but records that "
        "were deleted before they were read are an error where state depends on them.",
    ),
    Key("metrics.sample.window.ms", duration(1), 30_000, "Length of a window over which metrics are computed."),
    Key(
        "logging.format",
        choice("brief", "human", "json"),
        "brief",
        "How `kstreams run` writes its lines on standard error. `brief`: warnings, and the lines of your own loggers; "
        "`human`: also what goes on, with time, level, application, thread and task; `json`: the same as one JSON "
        "object per line.",
        own=True,
    ),
    Key(
        "logging.level",
        choice("DEBUG", "INFO", "WARNING", "ERROR"),
        "INFO",
        "Lowest level at which `kstreams run` shows the lines of your own loggers, unless `app.py` configures "
        "`logging` itself. Lines of installed packages are shown from `WARNING` on.",
        own=True,
    ),
    Key(
        "trace.records",
        choice("none", "sampled", "all"),
        "none",
        "Records that are traced through the operators by OpenTelemetry. `sampled`: those whose headers carry a "
        "sampled trace (`traceparent`); `all`: others begin one, if the sampler of the program says so.",
        own=True,
    ),
    Key("log.summary.interval.ms", duration(-1), 120_000, "Time between summary lines in the log; 0 or less: none."),
    Key(
        "task.timeout.ms",
        duration(0),
        300_000,
        "Time without progress after which a task is reported as stalled, and time for which the application "
        "retries a write that a topic refuses temporarily, and waits for a schema registry that does not answer.",
    ),
    Key(
        "deserialization.exception.handler",
        handler("fail", "continue"),
        "fail",
        "What happens when a key or value does not decode, or a timestamp is out of range: `fail`, `continue` without "
        "the record, or a function.",
    ),
    Key(
        "processing.exception.handler",
        handler("fail", "continue"),
        "fail",
        "What happens when an operator or punctuator raises: `fail`, `continue` without its output, or a function.",
    ),
    Key(
        "processing.exception.handler.global.enabled",
        FLAG,
        False,
        "Whether global tables call `processing.exception.handler` too; if not, they fail.",
    ),
    Key(
        "production.exception.handler",
        handler("fail", "continue", "retry"),
        "fail",
        "What happens when a record does not encode or a topic refuses it: `fail`, `continue` without it, `retry` "
        "if the write may succeed later, or a function.",
    ),
    Key(
        "errors.dead.letter.queue.topic.name",
        TEXT,
        None,
        "Topic that receives the input record of every failure, as it was read; it must exist.",
    ),
    Key(
        "errors.dead.letter.queue.dropped.records",
        FLAG,
        False,
        "Whether dropped records (late, without a key) are also sent to the dead-letter topic.",
        own=True,
    ),
    Key(
        "errors.dead.letter.queue.connect.headers",
        FLAG,
        False,
        "Whether dead letters also have the headers of Kafka Connect (`__connect.errors.*`).",
        own=True,
    ),
)

KEYS: dict[str, Key] = {key.name: key for key in (*_USED, *REGISTRY_KEYS, *UNUSED, *UNUSED_REGISTRY_KEYS)}
"""Every known key by name."""

OLD_NAMES = {
    "cache.max.bytes.buffering": "statestore.cache.max.bytes",
    "default.deserialization.exception.handler": "deserialization.exception.handler",
    "default.production.exception.handler": "production.exception.handler",
    "errors.deadletterqueue.topic.name": "errors.dead.letter.queue.topic.name",  # as KIP-1034 spelled it
    **SHORT_NAMES,
}
"""Former and proposed names of keys, which are still accepted."""

REFUSED = dict(CURES)
"""Keys that kstreams does not support, and what to do instead."""

PREFIXES = (
    "client.tag.",
    "main.consumer.",
    "restore.consumer.",
    "global.consumer.",
    "consumer.",
    "producer.",
    "admin.",
    "sasl.",
    "ssl.",
    "topic.",
    "spark.",
)
"""Keys with one of these prefixes are passed on unchanged to clients, internal topics or Spark."""
