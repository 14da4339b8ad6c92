"""`SourceMonitor`: finds topics of a pattern that come or go, and partitions that are added, at run time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from kstreams.errors import LogError
from kstreams.log.api import Log, TopicDescription
from kstreams.processor.topology.layout import Layout, source_topics
from kstreams.processor.topology.topology import SubTopology, Topology

logger = logging.getLogger(__name__)


class SourceMonitor:
    """Looks now and then whether there is more to read for the tasks of a topology, or less, than before.

    Parameters
    ----------
    topology : Topology
    interval_s : float
        Time between two looks.
    log : Log
    """

    def __init__(self, topology: Topology, interval_s: float, log: Log) -> None:
        self._log = log
        self._interval_s = interval_s
        self._subs = [sub for sub in topology.sub_topologies if not sub.is_global]

    def watch(self, layout: Layout, stopping: threading.Event, on_change: Callable[[], None]) -> None:
        """Call `on_change` whenever what there is to read differs from before, first from what `layout` reads."""
        counts = {sub.id: {topic: layout.partitions[topic] for topic in layout.inputs[sub.id]} for sub in self._subs}
        with self._log.admin() as admin:
            while not stopping.wait(self._interval_s):
                try:
                    existing = admin.topics()
                except LogError as error:
                    logger.warning("the search for new topics and partitions is tried again: %s", error)
                    continue
                partitions = {sub.id: _partitions(sub, layout, existing, counts[sub.id]) for sub in self._subs}
                if partitions != counts:
                    counts = partitions
                    on_change()


def _partitions(
    sub: SubTopology, layout: Layout, existing: Mapping[str, TopicDescription], counts: Mapping[str, int]
) -> dict[str, int]:
    """How many partitions there are of each topic; who reads a topic that is gone tells of it."""
    topics = source_topics(sub, layout.topic_names, existing, layout.own)
    return {topic: existing[topic].partitions if topic in existing else counts[topic] for topic in topics}
