"""MirrorMaker 2 for tests: its three connectors in a Connect worker on the target cluster.

with MirrorMaker(source.bootstrap_servers, target.bootstrap_servers):
    ...  # the topic "orders" of the source is "A.orders" in the target
"""

from __future__ import annotations

from tests.support.kafka_connect import ConnectWorker

_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_INTERVALS = (
    "refresh.topics.interval.seconds",
    "refresh.groups.interval.seconds",
    "emit.checkpoints.interval.seconds",
    "sync.group.offsets.interval.seconds",
    "emit.heartbeats.interval.seconds",
)
_REPLICATION = ("replication.factor", "offset-syncs.topic.replication.factor")
_FURTHER_REPLICATION = ("checkpoints.topic.replication.factor", "heartbeats.topic.replication.factor")


class MirrorMaker:
    """Copies the topics of a cluster `A` to a cluster `B`. `settings` are those of all three connectors."""

    def __init__(self, source: str, target: str, **settings: object) -> None:
        # Connect's default for headers makes text of their values: b"1" would arrive as b"MQ==".
        converters = {f"{part}.converter": _BYTES for part in ("key", "value", "header")}
        self._worker = ConnectWorker(target, settings=converters)
        self._settings: dict[str, object] = {
            "source.cluster.alias": "A",
            "source.cluster.bootstrap.servers": source,
            "target.cluster.alias": "B",
            "target.cluster.bootstrap.servers": target,
            "sync.group.offsets.enabled": "true",
            "tasks.max": 1,
            **dict.fromkeys(_INTERVALS, 1),
            **dict.fromkeys((*_REPLICATION, *_FURTHER_REPLICATION), 1),
            **settings,
        }

    def __enter__(self) -> MirrorMaker:
        self._worker.__enter__()
        try:
            for part in ("Source", "Checkpoint", "Heartbeat"):
                connector = f"org.apache.kafka.connect.mirror.Mirror{part}Connector"
                self._worker.put(part, {"connector.class": connector, **self._settings})
            self._worker.wait_running("Heartbeat")  # the others have no task until there is a topic and a group
        except BaseException:
            self._worker.stop()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self._worker.stop()
