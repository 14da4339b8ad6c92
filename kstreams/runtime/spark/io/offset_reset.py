"""The offset reset on Spark: decided at the first start of an application, and kept with the checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

from kstreams.batch import TopicPartition
from kstreams.clock import Clock
from kstreams.log.api import Log
from kstreams.private import write_private
from kstreams.processor.topology.offset_reset import default_reset, first_offset, reset_of
from kstreams.runtime.spark.io.rows import Offsets, offsets_of
from kstreams.runtime.spark.program import Program, source_partitions


def starting_offsets(program: Program, log: Log, clock: Clock) -> Offsets:
    """The first offset of every partition that is not read from its beginning.

    A first batch that is run again must begin where it began, whatever time it is by then: hence the file.

    Raises
    ------
    LogError
        When a source wants a committed offset: at the first start there is none.
    """
    path = Path(program.checkpoint) / "beginnings.json"
    if not path.exists():
        write_private(path, json.dumps(offsets_of(_decided(program, log, clock))).encode())
    kept: Offsets = json.loads(path.read_text())
    return kept


def _decided(program: Program, log: Log, clock: Clock) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    with log.admin() as admin, log.consumer() as consumer:
        for sub in program.sub_topologies:
            for source in source_partitions(program, {sub.id}):
                reset = reset_of(sub, source.topic, default_reset(program.config))
                if reset != "earliest":
                    found[source] = first_offset(source, reset, admin, consumer, clock.now_ms())
    return found
