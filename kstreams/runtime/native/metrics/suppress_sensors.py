"""`SuppressSensors`: what the suppress operators of a task hold back."""

from __future__ import annotations

from time import monotonic

from kstreams.processor.operators.suppress import SuppressOperator
from kstreams.processor.topology.nodes import ProcessorNode, SubTopology
from kstreams.runtime.metrics.activity import SampleWindows
from kstreams.runtime.metrics.samples import Samples
from kstreams.state.api import TaskState, TimeOrderedBuffer


class SuppressSensors:
    """The measurements of one suppress operator.

    Parameters
    ----------
    windows : SampleWindows
    store : str
        Its buffer's name.
    buffer : TimeOrderedBuffer

    Attributes
    ----------
    records, bytes : Samples
        What was in the buffer at each look.
    """

    def __init__(self, windows: SampleWindows, store: str, buffer: TimeOrderedBuffer) -> None:
        self.store = store
        self._buffer = buffer
        self.records = windows.samples()
        self.bytes = windows.samples()

    def look(self) -> None:
        """See what is there now."""
        now = monotonic()
        self.records.record(self._buffer.num_records(), now)
        self.bytes.record(self._buffer.num_bytes(), now)

    @property
    def extents(self) -> dict[str, Samples]:
        """What is in the buffer, by what it is called in metrics."""
        return {"count": self.records, "size": self.bytes}


def suppress_sensors(windows: SampleWindows, sub_topology: SubTopology, state: TaskState) -> list[SuppressSensors]:
    """One for each suppress operator."""
    operators = (node.operator for node in sub_topology.nodes if isinstance(node, ProcessorNode))
    return [
        SuppressSensors(windows, operator.store, state.stores[operator.store])
        for operator in operators
        if isinstance(operator, SuppressOperator)
    ]
