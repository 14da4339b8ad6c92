"""`PatternMonitor`: finds topics of a pattern that are created, or deleted, while the application runs."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kstreams.log.api import Log
from kstreams.processor.topology.layout import Layout, source_topics
from kstreams.processor.topology.topology import Topology


class PatternMonitor:
    """Looks now and then whether the patterns of a topology match other topics than before.

    Parameters
    ----------
    topology : Topology
    interval_s : float
        Time between two looks.
    log : Log
    """

    def __init__(self, topology: Topology, interval_s: float, log: Log) -> None:
        self._log, self._interval_s = log, interval_s
        subs = topology.sub_topologies
        self._subs = [sub for sub in subs if any(source.pattern is not None for source in sub.sources)]

    @property
    def has_patterns(self) -> bool:
        """Whether the topology reads topics by a pattern."""
        return bool(self._subs)

    def watch(self, layout: Layout, stopping: threading.Event, on_change: Callable[[], None]) -> None:
        """Call `on_change` whenever the topics differ from those found before, first from those of `layout`."""
        known = {sub.id: layout.inputs[sub.id] for sub in self._subs}
        with self._log.admin() as admin:
            while not stopping.wait(self._interval_s):
                existing = admin.topics()
                found = {sub.id: source_topics(sub, layout.topic_names, existing, layout.own) for sub in self._subs}
                if found != known:
                    known = found
                    on_change()
