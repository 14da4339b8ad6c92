"""`SuppressSensors`: what the suppress operators of a task hold back, and how many updates they let go."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic

from kstreams.processor.operators.suppress import SuppressOperator
from kstreams.processor.topology.nodes import ProcessorNode, SubTopology
from kstreams.runtime.metrics.activity import SampleWindows
from kstreams.runtime.metrics.growth import Growth
from kstreams.runtime.metrics.samples import Samples
from kstreams.state.api import TaskState, TimeOrderedBuffer


class SuppressSensors:
    """The measurements of one suppress operator.

    Parameters
    ----------
    windows : SampleWindows
    node : str
    store : str
        Its buffer's name.
    buffer : TimeOrderedBuffer

    Attributes
    ----------
    records, bytes : Samples
        What was in the buffer at each look.
    emitted : Growth
    """

    def __init__(self, windows: SampleWindows, node: str, store: str, buffer: TimeOrderedBuffer) -> None:
        self.node, self.store, self._buffer = node, store, buffer
        self.records, self.bytes, self.emitted = windows.samples(), windows.samples(), Growth(windows)

    def look(self, forwarded: Mapping[tuple[str, str], int]) -> None:
        """See what is there now, when so many records were passed from each operator to each other one."""
        now = monotonic()
        self.records.record(self._buffer.num_records(), now)
        self.bytes.record(self._buffer.num_bytes(), now)
        self.emitted.reached(max((count for (node, _), count in forwarded.items() if node == self.node), default=0))

    @property
    def extents(self) -> dict[str, Samples]:
        """What is in the buffer, by what it is called in metrics."""
        return {"count": self.records, "size": self.bytes}


def suppress_sensors(windows: SampleWindows, sub_topology: SubTopology, state: TaskState) -> list[SuppressSensors]:
    """One for each suppress operator."""
    operators = ((node.name, node.operator) for node in sub_topology.nodes if isinstance(node, ProcessorNode))
    return [
        SuppressSensors(windows, name, operator.store, state.stores[operator.store])
        for name, operator in operators
        if isinstance(operator, SuppressOperator)
    ]
