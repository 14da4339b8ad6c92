"""`Emissions`: how many results the operators of a task have let go that hold results back."""

from __future__ import annotations

from collections.abc import Mapping

from kstreams.processor.operators.suppress import SuppressOperator
from kstreams.processor.topology.nodes import ProcessorNode, SubTopology
from kstreams.runtime.metrics.activity import SampleWindows
from kstreams.runtime.metrics.growth import Growth


class Emissions:
    """What each of these operators has passed on.

    Parameters
    ----------
    windows : SampleWindows
    sub_topology : SubTopology

    Attributes
    ----------
    by_operator : dict of (str, str) to Growth
        By the operator's name and what the metric is called.
    """

    def __init__(self, windows: SampleWindows, sub_topology: SubTopology) -> None:
        named = ((node.name, _metric(node)) for node in sub_topology.nodes if isinstance(node, ProcessorNode))
        self.by_operator = {(node, metric): Growth(windows) for node, metric in named if metric is not None}

    def look(self, forwarded: Mapping[tuple[str, str], int]) -> None:
        """See how many records were passed from each operator to each other one by now."""
        if not self.by_operator:
            return
        passed: dict[str, int] = {}
        for (node, _), count in forwarded.items():
            passed[node] = max(count, passed.get(node, 0))
        for (node, _), growth in self.by_operator.items():
            growth.reached(passed.get(node, 0))


def _metric(node: ProcessorNode) -> str | None:
    """What counts the results of an operator; None where it holds none back."""
    if isinstance(node.operator, SuppressOperator):
        return "suppression-emit"
    return "window-aggregate-final-emit" if getattr(node.operator, "emits_on_close", False) else None
