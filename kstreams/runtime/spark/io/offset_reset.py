"""The offset reset on Spark, decided at the first start of an application and stored in the checkpoint."""

from __future__ import annotations

import json

from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.api import Log
from kstreams.processor.topology.offset_reset import default_reset, first_offset, reset_of
from kstreams.runtime.spark.exchange.rows import Offsets, offsets_of
from kstreams.runtime.spark.program import Program, source_partitions

_NAME = "beginnings.json"


def starting_offsets(program: Program, log: Log, clock: Clock) -> Offsets:
    """Return the first offset of every partition that is not read from its beginning.

    The offsets are stored in the checkpoint, so that a first batch that runs again begins at the same offsets at a
    later time.

    Raises
    ------
    LogError
        If a source requires a committed offset: at the first start there is none.
    """
    try:
        raw = program.storage.read(_NAME)
    except FileNotFoundError:
        raw = program.storage.publish(_NAME, json.dumps(offsets_of(_decided(program, log, clock))).encode())
    offsets: Offsets = json.loads(raw)
    return offsets


def _decided(program: Program, log: Log, clock: Clock) -> dict[TopicPartition, int]:
    starts: dict[TopicPartition, int] = {}
    with log.admin() as admin, log.consumer() as consumer:
        for sub in program.sub_topologies:
            for source in source_partitions(program, {sub.id}):
                reset = reset_of(sub, source.topic, default_reset(program.config))
                if reset != "earliest":
                    starts[source] = first_offset(source, reset, admin, consumer, clock.wall_ms())
    return starts
