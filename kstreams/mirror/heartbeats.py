"""`Heartbeats`: records in the target that tell that a mirror runs, in the format of MirrorMaker 2."""

from __future__ import annotations

import struct

from kstreams.kernel.clock import Clock
from kstreams.log.api import Log
from kstreams.mirror.copied_topics import create_internal_topic
from kstreams.mirror.group_offsets import text_of_struct
from kstreams.mirror.settings import HEARTBEATS_TOPIC, ReplicationPolicy


class Heartbeats:
    """The heartbeats of one mirror.

    Parameters
    ----------
    target : Log
    policy : ReplicationPolicy
    clock : Clock
    """

    def __init__(self, target: Log, policy: ReplicationPolicy, clock: Clock) -> None:
        self._clock = clock
        self._key = text_of_struct(policy.source, policy.target)
        self._producer = target.producer({"delivery.report.only.error": True})
        with target.admin() as admin:
            create_internal_topic(admin, HEARTBEATS_TOPIC)

    def emit(self) -> None:
        """Write a heartbeat."""
        self._producer.send(HEARTBEATS_TOPIC, self._key, struct.pack(">hq", 0, self._clock.wall_ms()))

    def close(self) -> None:
        """Release the producer."""
        self._producer.close()
