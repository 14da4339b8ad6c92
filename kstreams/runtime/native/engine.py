"""The native engine as `kstreams.app` calls it: run in the foreground, reset, explain."""

from __future__ import annotations

import itertools
import logging
import shutil
import threading
from collections.abc import Callable

from kstreams.config import Config
from kstreams.log import home_of
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.native.explain import explain
from kstreams.runtime.native.garbage_collection import infrequent_garbage_collection
from kstreams.runtime.native.progress import Progress
from kstreams.runtime.native.state.locks import lock_application, state_folder
from kstreams.runtime.native.state.topology_file import TopologyFile
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.runtime.native.topics import internal_topics

__all__ = ["explain", "reset", "run"]

logger = logging.getLogger(__name__)

_STOP_S = 4.5  # a stop that takes longer is logged
_TICK_S = 0.1
_TICKS_PER_REPORT = 10


def run(
    topology: Topology,
    config: Config,
    *,
    once: bool = False,
    until_end: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Run until `stop` is set or the input ends; raises what ended it.

    Python collects garbage less often meanwhile. A program that runs a `KafkaStreams` itself keeps its own settings.
    """
    stop = stop or threading.Event()
    streams = KafkaStreams(topology, config)
    with infrequent_garbage_collection():
        streams.start(once=once, until_end=until_end)
        for tick in itertools.count(1):
            if stop.is_set() or streams.wait(_TICK_S):
                break
            if on_progress is not None and tick % _TICKS_PER_REPORT == 0:
                on_progress(streams.progress())
    if not streams.close(_STOP_S):
        logger.warning(
            "still stopping: what an operator has begun is finished and committed first; a second Ctrl-C or SIGTERM "
            "ends at once, and what is not committed is processed again"
        )
        streams.close()
    streams.wait(0)
    if on_progress is not None:
        on_progress(streams.progress())


def reset(topology: Topology, config: Config) -> None:
    """Delete the application's internal topics, committed offsets and state; refused while it runs."""
    locks, known = lock_application(config), TopologyFile(state_folder(config))
    try:
        with home_of(config).open() as log, log.admin() as admin:
            existing = admin.topics()
            left = {f"{config.application_id}-{name}" for name in known.read().internal_topics}
            for topic in {*internal_topics(topology, config.application_id), *left}:
                if topic in existing:
                    admin.delete_topic(topic)
            admin.delete_group(config.application_id)
        for entry in state_folder(config).iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
        known.delete()
    finally:
        for lock in locks:
            lock.release()
    logger.info("%s was reset", config.application_id)
