"""The list of all metrics: group, name, kind, unit, labels, description and recording level, as in Kafka Streams.

Sensors, both engines and the page of applications refer to these declarations. `docs/reference/metrics.md` and the
queries of the dashboard `docs/grafana.json` come from this list.
"""

from __future__ import annotations

from kstreams.metrics.template import (
    AvgMinMax,
    MetricName,
    MetricScope,
    MetricTemplate,
    RateTotal,
    RecordingLevel,
    Tags,
    Unit,
)
from kstreams.state.rows.store_measures import StoreOperation

CLIENT = "stream-metrics"
THREAD = "stream-thread-metrics"
TASK = "stream-task-metrics"
NODE = "stream-processor-node-metrics"
TOPIC = "stream-topic-metrics"
STATE = "stream-state-metrics"
UPDATER = "stream-state-updater-metrics"
CONSUMER = "consumer-fetch-manager-metrics"
PRODUCER = "producer-metrics"
CACHE = "stream-record-cache-metrics"
CONNECTOR = "connector-task-metrics"
SPARK_QUERY = "spark-query-metrics"

TEMPLATES: dict[tuple[str, str], MetricTemplate] = {}
"""Every metric, by group and name."""

_CLIENT = MetricScope(TEMPLATES, CLIENT, ("client-id",))
_THREAD = MetricScope(TEMPLATES, THREAD, ("thread-id",))
_TASK = MetricScope(TEMPLATES, TASK, ("thread-id", "task-id"))
_TASK_DEBUG = _TASK.debug()
_TASK_OF_CLIENT = MetricScope(TEMPLATES, TASK, ("client-id", "task-id"))
_NODE = MetricScope(TEMPLATES, NODE, ("thread-id", "task-id", "processor-node-id"))
_NODE_OF_TOPIC = _NODE.by("topic-name")
_NODE_OF_THREAD = MetricScope(TEMPLATES, NODE, ("thread-id", "processor-node-id"))
_CONSUMED = MetricScope(TEMPLATES, TOPIC, ("thread-id", "task-id", "processor-node-id", "topic-name"))
_PRODUCED = MetricScope(TEMPLATES, TOPIC, ("thread-id", "topic-name"))
_PARTITION = MetricScope(TEMPLATES, CONSUMER, ("client-id", "topic", "partition"))
_PRODUCER = MetricScope(TEMPLATES, PRODUCER, ("thread-id",))
_CONSUMER = MetricScope(TEMPLATES, CONSUMER, ("thread-id",))
_STORE = MetricScope(TEMPLATES, STATE, ("thread-id", "task-id", "state-id"), RecordingLevel.DEBUG)
_CACHE = MetricScope(TEMPLATES, CACHE, ("thread-id", "task-id", "record-cache-id"), RecordingLevel.DEBUG)
_ROCKSDB_STORE = MetricScope(TEMPLATES, STATE, ("thread-id", "task-id", "rocksdb-state-id"))
_DATABASE = MetricScope(TEMPLATES, STATE, ("thread-id", "task-id"), RecordingLevel.DEBUG)
_UPDATER = MetricScope(TEMPLATES, UPDATER, ("client-id",))
_CONNECTOR = MetricScope(TEMPLATES, CONNECTOR, ("client-id", "connector", "task"))
_SPARK_QUERY = MetricScope(TEMPLATES, SPARK_QUERY, ("client-id", "query"))

# --- connectors, by the names of Kafka Connect where it has them -----------------------------------------------------

CONNECTOR_STATUS = _CONNECTOR.text(
    "status", "State of a task of a source or sink: RUNNING, PAUSED, RESTARTING, UNASSIGNED or FAILED."
)
CONNECTOR_RECORDS = _CONNECTOR.counter(
    "records-committed-total", "Rows that a source or sink has committed.", ours=True
)
CONNECTOR_BYTES = _CONNECTOR.counter(
    "bytes-committed-total", "Bytes of keys and values in the topic of the rows committed.", Unit.BYTES, ours=True
)
CONNECTOR_RETRIES = _CONNECTOR.counter(
    "total-retries", "Times that a task was opened again, since the other system did not answer."
)
CONNECTOR_COMMIT_AGE = _CONNECTOR.gauge(
    "commit-age-ms", "Time since the last commit of rows, or since the start.", Unit.MILLISECONDS, ours=True
)

CONNECTOR_WAITING_RECORDS = _CONNECTOR.gauge(
    "waiting-records", "Rows of a sink that wait for another attempt, or behind such a row.", ours=True
)
CONNECTOR_OLDEST_WAIT = _CONNECTOR.gauge(
    "oldest-wait-ms",
    "Time since the target of a sink has first refused the oldest row that waits; 0 if no row waits.",
    Unit.MILLISECONDS,
    ours=True,
)

# --- queries of Spark, by the names of StreamingQueryProgress --------------------------------------------------------

BATCH_ID = _SPARK_QUERY.gauge("batch-id", "Number of the last batch, or of the last step of tasks.", ours=True)
INPUT_ROWS_PER_SECOND = _SPARK_QUERY.gauge(
    "input-rows-per-second", "Rows that came in from the batch before to the last one.", Unit.PER_SECOND, ours=True
)
PROCESSED_ROWS_PER_SECOND = _SPARK_QUERY.gauge(
    "processed-rows-per-second", "Rows that the last batch has processed.", Unit.PER_SECOND, ours=True
)
BATCH_DURATION = _SPARK_QUERY.by("phase").gauge(
    "batch-duration-ms",
    "Duration of a phase of the last batch; `triggerExecution` is the whole batch.",
    Unit.MILLISECONDS,
    ours=True,
)
STATE_ROWS = _SPARK_QUERY.by("operator").gauge(
    "state-rows-total", "Rows of the state that Spark keeps for an operator of the query.", ours=True
)
STATE_MEMORY = _SPARK_QUERY.by("operator").gauge(
    "state-memory-used-bytes", "Memory of the state that Spark keeps for an operator.", Unit.BYTES, ours=True
)

# --- the client ------------------------------------------------------------------------------------------------------

VERSION = _CLIENT.text("version", "Version of kstreams.")
APPLICATION_ID = _CLIENT.text("application-id", "Id of the application.")
CLIENT_STATE = _CLIENT.text("state", "State of the client: CREATED, REBALANCING, RUNNING and so on.")
ALIVE_STREAM_THREADS = _CLIENT.gauge("alive-stream-threads", "Stream threads that run or start.")
FAILED_STREAM_THREADS = _CLIENT.counter("failed-stream-threads", "Stream threads that an error has ended.")
STALLS = _CLIENT.counter("stalls-total", "Tasks that made no progress for task.timeout.ms.", ours=True)
REBUILDS = _CLIENT.counter("rebuilds-total", "Tasks whose damaged stores were rebuilt.", ours=True)
REASSIGNED = _CLIENT.counter(
    "reassigned-total", "Assignments of a task to a process that had the task before.", ours=True
)

# --- stream threads --------------------------------------------------------------------------------------------------

_PUNCTUATION = "calling punctuators that are due"
_PUNCTUATIONS = "Rounds with a punctuator that was due"
_RUN = "a run of records"
_RECORDS = "Records processed"

THREAD_POLL = _THREAD.activity("poll", "a poll of the consumer", "Polls")
THREAD_PROCESS = _THREAD.activity("process", _RUN, _RECORDS)
THREAD_PUNCTUATE = _THREAD.activity("punctuate", _PUNCTUATION, _PUNCTUATIONS)
THREAD_COMMIT = _THREAD.activity("commit", "a commit of all tasks", "Commits")
POLL_RECORDS = _THREAD.avg_max("poll-records", "Records of a poll")
PROCESS_RECORDS = _THREAD.avg_max("process-records", "Records of a run")
TASK_CREATED = _THREAD.rate_total("task-created", "Tasks that the thread opened")
TASK_CLOSED = _THREAD.rate_total("task-closed", "Tasks that the thread closed")
BLOCKED_TIME = _THREAD.counter(
    "blocked-time-ns-total", "Time spent in polls and commits, in nanoseconds.", Unit.NANOSECONDS
)
THREAD_START_TIME = _THREAD.gauge(
    "thread-start-time", "When the thread was created, in milliseconds since 1970.", Unit.TIMESTAMP
)
THREAD_STATE = _THREAD.text("state", "State of the thread.")

# --- tasks -----------------------------------------------------------------------------------------------------------

DROPPED_RECORDS = _TASK.rate_total("dropped-records", "Records that were skipped, for any reason")
ACTIVE_BUFFER_COUNT = _TASK.gauge("active-buffer-count", "Records in the input buffer.")
INPUT_BUFFER_BYTES = _TASK.gauge(
    "input-buffer-bytes-total", "Estimated size of the input buffer, in bytes.", Unit.BYTES
)
CACHE_SIZE_BYTES = _TASK.gauge(
    "cache-size-bytes-total", "Memory that live values of the task's stores take, in bytes.", Unit.BYTES
)
STREAM_TIME = _TASK.gauge(
    "stream-time", "Greatest timestamp processed, in milliseconds; -1 at first.", Unit.TIMESTAMP, ours=True
)
UNCOMMITTED_BYTES = _TASK.gauge(
    "uncommitted-bytes",
    "Estimated size of what stores and operators hold until the next commit.",
    Unit.BYTES,
    ours=True,
)
TASK_PROCESS_LATENCY = _TASK_DEBUG.latency("process", _RUN)
TASK_PROCESS = _TASK_DEBUG.rate_total("process", _RECORDS)
TASK_PUNCTUATE_LATENCY = _TASK_DEBUG.latency("punctuate", _PUNCTUATION)
TASK_PUNCTUATE = _TASK_DEBUG.rate_total("punctuate", _PUNCTUATIONS)
TASK_COMMIT = _TASK_DEBUG.rate_total("commit", "Commits")
ENFORCED_PROCESSING = _TASK_DEBUG.rate_total("enforced-processing", "Runs although an input had no record")
RECORD_LATENESS = _TASK_DEBUG.avg_max(
    "record-lateness", "How far records are behind stream time, in milliseconds", Unit.MILLISECONDS
)
ACTIVE_PROCESS_RATIO = _TASK_DEBUG.gauge(
    "active-process-ratio", "Share of the processing time of the thread that the task takes.", Unit.RATIO
)
TASK_RESTORE = _TASK_OF_CLIENT.rate_total("restore", "Changelog records applied before the task could run")
TASK_UPDATE = _TASK_OF_CLIENT.rate_total("update", "Changelog records applied to the standby task")
TASK_REMAINING_RECORDS = _TASK_OF_CLIENT.gauge(
    "restore-remaining-records-total", "Changelog records that are still to be restored."
)
STANDBY_LAG = _TASK_OF_CLIENT.gauge(
    "standby-lag", "Changelog records that the standby task has not applied yet.", ours=True
)

# --- nodes -----------------------------------------------------------------------------------------------------------

_AGE = (
    "age of records by their timestamps, in milliseconds, when a source reads and processes them or a sink writes "
    "them. The ages of more than 32 records at once are those of evenly spaced records."
)

NODE_PROCESS_TOTAL = _NODE.counter("process-total", "Records of a source that were processed or dropped.")
NODE_PROCESS_RATE = _NODE_OF_TOPIC.gauge(
    "process-rate", "Records of a source that were processed, per second.", Unit.PER_SECOND
)
RECORD_E2E_LATENCY = AvgMinMax(
    _NODE_OF_TOPIC.gauge("record-e2e-latency-avg", f"Mean {_AGE}", Unit.MILLISECONDS),
    _NODE_OF_TOPIC.gauge("record-e2e-latency-min", f"Least {_AGE}", Unit.MILLISECONDS),
    _NODE_OF_TOPIC.gauge("record-e2e-latency-max", f"Greatest {_AGE}", Unit.MILLISECONDS),
)
DROPPED_RECORDS_BY_REASON = _NODE.by("reason").counter(
    "dropped-records-by-reason-total", "Records that an operator skipped, by reason.", ours=True
)
FORWARDED_RECORDS = (
    _NODE.by("child-node-id")
    .debug()
    .counter("forwarded-records-total", "Records that an operator forwarded to a child.", ours=True)
)
ACTIVE_RATIO = _NODE_OF_THREAD.debug().gauge(
    "active-ratio", "Estimated share of the thread's time that an operator takes.", Unit.RATIO, ours=True
)
WAITING_RECORDS = _NODE.gauge(
    "waiting-records", "Records that wait in an operator for another attempt or for their time.", ours=True
)
OLDEST_WAIT = _NODE.gauge(
    "oldest-wait-ms",
    "For how long the oldest waiting record of a retry, or the next one of a delay or throttle, has waited, in "
    "milliseconds; 0 if no record waits.",
    Unit.MILLISECONDS,
    ours=True,
)
PARKED_RECORDS = _NODE.counter(
    "parked-records-total", "Records that an operator wrote to its parking topic after their last attempt.", ours=True
)
SUPPRESSION_EMIT = _NODE.debug().rate_total("suppression-emit", "Updates that a suppress operator has emitted")
WINDOW_FINAL_EMIT = _NODE.debug().rate_total("window-aggregate-final-emit", "Final results of windows")

# --- topics ----------------------------------------------------------------------------------------------------------

_BYTES = "Bytes of keys and values, estimated from the memory that their columns take."

RECORDS_CONSUMED = _CONSUMED.counter("records-consumed-total", "Records of a topic that a source has processed.")
RECORDS_PRODUCED = _PRODUCED.counter(
    "records-produced-total", "Records that sinks wrote to a topic, repartition topics included."
)
BYTES_CONSUMED = _CONSUMED.counter("bytes-consumed-total", _BYTES, Unit.BYTES)
BYTES_PRODUCED = _PRODUCED.counter("bytes-produced-total", _BYTES, Unit.BYTES)
RECORDS_LAG = _PARTITION.gauge("records-lag", "Records of a partition that are not processed yet.")
RECORDS_LAG_MS = _PARTITION.gauge(
    "records-lag-ms",
    "Age of the last processed record of a partition, in milliseconds; 0 if no record is left to process.",
    Unit.MILLISECONDS,
    ours=True,
)

# --- quotas ----------------------------------------------------------------------------------------------------------

_SENT = "Delays of a thread's producer by the quota `producer_byte_rate` of its client id, in milliseconds"
_READ = "Delays of a thread's consumer by the quota `consumer_byte_rate` of its client id, in milliseconds"

PRODUCE_THROTTLE_TIME = _PRODUCER.avg_max("produce-throttle-time", _SENT, Unit.MILLISECONDS)
PRODUCE_THROTTLE_TOTAL = _PRODUCER.counter(
    "produce-throttle-time-total", f"{_SENT}: the sum.", Unit.MILLISECONDS, ours=True
)
FETCH_THROTTLE_TIME = _CONSUMER.avg_max("fetch-throttle-time", _READ, Unit.MILLISECONDS)
FETCH_THROTTLE_TOTAL = _CONSUMER.counter(
    "fetch-throttle-time-total", f"{_READ}: the sum.", Unit.MILLISECONDS, ours=True
)

# --- stores ----------------------------------------------------------------------------------------------------------

_OPERATIONS = {
    StoreOperation.GET: "Look-ups of a key",
    StoreOperation.PUT: "Writes of a key",
    StoreOperation.PUT_IF_ABSENT: "Writes of keys that are absent",
    StoreOperation.PUT_ALL: "Writes of several keys",
    StoreOperation.DELETE: "Deletions of a key",
    StoreOperation.REMOVE: "Deletions of a session",
    StoreOperation.RANGE: "Scans between two keys",
    StoreOperation.PREFIX_SCAN: "Scans of a prefix",
    StoreOperation.ALL: "Scans of all keys",
    StoreOperation.FETCH: "Reads of windows or sessions",
    StoreOperation.FLUSH: "Writes of committed changes to disk",
    StoreOperation.RESTORE: "Batches of a changelog",
}
_HELD_BACK = "in the buffer of a suppress operator, after runs and commits"
_HITS = "of the look-ups in a store that needed no read of RocksDB."

OPERATIONS = {
    operation: _STORE.operation(operation.value, description) for operation, description in _OPERATIONS.items()
}
SUPPRESSION_BUFFER_COUNT = _STORE.avg_max("suppression-buffer-count", f"Updates {_HELD_BACK}")
SUPPRESSION_BUFFER_SIZE = _STORE.avg_max("suppression-buffer-size", f"Bytes of updates {_HELD_BACK}", Unit.BYTES)
HIT_RATIO = AvgMinMax(
    _CACHE.gauge("hit-ratio-avg", f"Share {_HITS}", Unit.RATIO),
    _CACHE.gauge("hit-ratio-min", f"Least share, in a run, {_HITS}", Unit.RATIO),
    _CACHE.gauge("hit-ratio-max", f"Greatest share, in a run, {_HITS}", Unit.RATIO),
)

# --- RocksDB ---------------------------------------------------------------------------------------------------------

ROCKSDB_PROPERTIES: dict[str, MetricTemplate] = {}
"""The metrics that are properties of RocksDB, by the name of the property."""


def _property(name: str, meaning: str, unit: Unit = Unit.NUMBER) -> MetricTemplate:
    template = ROCKSDB_PROPERTIES[name] = _ROCKSDB_STORE.gauge(name, f"{meaning} As of the last commit.", unit)
    return template


def _statistic(name: str, events: str) -> RateTotal:
    return _DATABASE.rate_total(name, f"{events}, for all stores of a task", Unit.BYTES)


def _hit_ratio(name: str, place: str) -> MetricTemplate:
    return _DATABASE.gauge(name, f"Share of look-ups that {place} answered.", Unit.RATIO)


TOTAL_SST_FILES_SIZE = _property("total-sst-files-size", "Bytes of a store's files.", Unit.BYTES)
_property("live-sst-files-size", "Bytes of a store's files that are in use.", Unit.BYTES)
ESTIMATE_NUM_KEYS = _property("estimate-num-keys", "Rows of a store, by RocksDB's estimate.")
_property("num-immutable-mem-table", "Memtables that wait to be written.")
_property("cur-size-active-mem-table", "Bytes of the active memtable.", Unit.BYTES)
CUR_SIZE_ALL_MEM_TABLES = _property(
    "cur-size-all-mem-tables", "Bytes of memtables that are not written yet.", Unit.BYTES
)
_property("size-all-mem-tables", "Bytes of all memtables, including those that readers pin.", Unit.BYTES)
_property("num-entries-active-mem-table", "Entries of the active memtable.")
_property("num-entries-imm-mem-tables", "Entries of memtables that wait to be written.")
_property("num-deletes-active-mem-table", "Deletions in the active memtable.")
_property("num-deletes-imm-mem-tables", "Deletions in memtables that wait to be written.")
_property("mem-table-flush-pending", "1 while a memtable waits to be written.")
_property("num-running-flushes", "Memtables that are being written.")
_property("compaction-pending", "1 while a compaction waits.")
_property("num-running-compactions", "Compactions under way.")
_property(
    "estimate-pending-compaction-bytes",
    "Bytes that compactions have to rewrite, by RocksDB's estimate.",
    Unit.BYTES,
)
_property("num-live-versions", "Versions of the set of files that are in use.")
_property("block-cache-capacity", "Capacity of the block cache of the process, in bytes.", Unit.BYTES)
BLOCK_CACHE_USAGE = _property("block-cache-usage", "Bytes in the block cache.", Unit.BYTES)
_property("block-cache-pinned-usage", "Bytes in the block cache that cannot be evicted now.", Unit.BYTES)
_property("estimate-table-readers-mem", "Bytes of indices and filters outside the block cache.", Unit.BYTES)
BACKGROUND_ERRORS = _property("background-errors", "Errors of flushes and compactions.")
ESTIMATE_LIVE_DATA_SIZE = _ROCKSDB_STORE.gauge(
    "estimate-live-data-size", "Bytes of a store that are in use, by RocksDB's estimate.", Unit.BYTES, ours=True
)
BYTES_WRITTEN = _statistic("bytes-written", "Bytes written to RocksDB")
BYTES_READ = _statistic("bytes-read", "Bytes read from RocksDB")
MEMTABLE_BYTES_FLUSHED = _statistic("memtable-bytes-flushed", "Bytes of memtables written to disk")
COMPACTION_BYTES_WRITTEN = _statistic("bytes-written-compaction", "Bytes written by compactions")
COMPACTION_BYTES_READ = _statistic("bytes-read-compaction", "Bytes read by compactions")
MEMTABLE_HIT_RATIO = _hit_ratio("memtable-hit-ratio", "memtables")
DATA_BLOCK_HIT_RATIO = _hit_ratio("block-cache-data-hit-ratio", "data blocks in the block cache")
INDEX_BLOCK_HIT_RATIO = _hit_ratio("block-cache-index-hit-ratio", "index blocks in the block cache")
FILTER_BLOCK_HIT_RATIO = _hit_ratio("block-cache-filter-hit-ratio", "filter blocks in the block cache")
MEMTABLE_FLUSH_TIME = _DATABASE.avg_max("memtable-flush-time", "Milliseconds to write a memtable", Unit.MILLISECONDS)
COMPACTION_TIME = _DATABASE.avg_max("compaction-time", "Milliseconds of a compaction", Unit.MILLISECONDS)
WRITE_STALL_DURATION = _DATABASE.counter(
    "write-stall-duration-total", "Milliseconds for which RocksDB blocked writes.", Unit.MILLISECONDS
)
NUMBER_FILE_ERRORS = _DATABASE.counter("number-file-errors-total", "Errors of RocksDB's files.")

# --- the state updater -----------------------------------------------------------------------------------------------

ACTIVE_RESTORING_TASKS = _UPDATER.gauge("active-restoring-tasks", "Active tasks that are being restored.")
STANDBY_UPDATING_TASKS = _UPDATER.gauge("standby-updating-tasks", "Standby tasks that are being updated.")
ACTIVE_RESTORE_RATIO = _UPDATER.gauge(
    "active-restore-ratio", "Share of the updater's time that restoring active tasks takes.", Unit.RATIO
)
STANDBY_UPDATE_RATIO = _UPDATER.gauge(
    "standby-update-ratio", "Share of the updater's time that updating standby tasks takes.", Unit.RATIO
)
IDLE_RATIO = _UPDATER.gauge("idle-ratio", "Share of the updater's time in which it does nothing.", Unit.RATIO)
RESTORE_RECORDS_RATE = _UPDATER.rate("restore-records", "Changelog records applied")
RESTORE_CALL_RATE = _UPDATER.rate("restore-call", "Batches of changelog records applied")
RESTORE_RECORDS_TOTAL = _UPDATER.counter("restore-records-total", "Changelog records applied to stores.", ours=True)
STORE_REMAINING_RECORDS = _UPDATER.by("task-id", "store").gauge(
    "restore-remaining-records-total", "Changelog records of a store that are still to be restored.", ours=True
)

# --- mirrors ---------------------------------------------------------------------------------------------------------

MIRROR = "mirror-source-metrics"
_MIRRORED = MetricScope(TEMPLATES, MIRROR, ("source", "target", "topic", "partition"))

MIRROR_RECORD_COUNT = _MIRRORED.counter("record-count", "Records that a mirror has copied to a partition.", ours=True)
MIRROR_BYTE_COUNT = _MIRRORED.counter(
    "byte-count", "Bytes of keys and values that a mirror has copied to a partition.", Unit.BYTES, ours=True
)
MIRROR_RECORD_AGE = _MIRRORED.gauge(
    "record-age-ms",
    "Age of the last copied record when it was committed, in milliseconds.",
    Unit.MILLISECONDS,
    ours=True,
)
MIRROR_LAG = _MIRRORED.gauge("records-lag", "Records of the source that a mirror has not copied yet.", ours=True)

# --- sensors of processors -------------------------------------------------------------------------------------------

_SENSOR = "sensor"
_SENSOR_VALUE = _NODE.by(_SENSOR)

SENSOR_TOTAL = _SENSOR_VALUE.gauge(f"{_SENSOR}-total", "Sum of the values of a processor's sensor.", ours=True)
SENSOR_COUNT = _SENSOR_VALUE.gauge(f"{_SENSOR}-count", "Number of the values of a processor's sensor.", ours=True)
SENSOR_MAX = _SENSOR_VALUE.gauge(f"{_SENSOR}-max", "Greatest value of a processor's sensor.", ours=True)


def of_sensor(template: MetricTemplate, sensor: str, tags: Tags) -> MetricName:
    """Return the name of a value of a processor's sensor, which begins with the name of the sensor.

    Examples
    --------
    >>> of_sensor(SENSOR_TOTAL, "words", ()).name
    'words-total'
    """
    return MetricName(NODE, sensor + template.name.removeprefix(_SENSOR), (*tags, (_SENSOR, sensor)))


def template_of(metric: MetricName) -> MetricTemplate:
    """Return the declaration of a metric. Sensors have common ones: not every name of a sensor is valid elsewhere.

    Examples
    --------
    >>> template_of(of_sensor(SENSOR_TOTAL, "till: €", ())).name
    'sensor-total'
    """
    if metric.tag(_SENSOR) is None:
        return TEMPLATES[metric.group, metric.name]
    return TEMPLATES[NODE, f"{_SENSOR}-{metric.name.rpartition('-')[2]}"]
