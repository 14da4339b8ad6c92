"""The keys of Kafka Streams that are accepted, so that its configurations run, and change nothing here."""

from __future__ import annotations

from kstreams.config.key import Key
from kstreams.config.kinds import OBJECT


def _unused(name: str, reason: str) -> Key:
    return Key(name, OBJECT, None, f"Not used by this engine: {reason}.", used=False)


UNUSED = (
    _unused("allow.os.group.write.access", "only the owner may access state folders"),
    _unused("built.in.metrics.version", "there is one version of metrics"),
    _unused("config.providers", "a configuration is Python: it takes values from wherever it likes"),
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
    _unused("metadata.cluster.check.enable", "set what the client has for it under `consumer.` or `producer.`"),
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
        "the client cannot send descriptions to brokers; whoever wants one reads it from `/v1/topology`",
    ),
    _unused("upgrade.from", "there is no older version"),
    _unused("window.size.ms", "windowed serdes contain the size of their window"),
    _unused("windowed.inner.class.serde", "windowed serdes contain their inner serde"),
)
