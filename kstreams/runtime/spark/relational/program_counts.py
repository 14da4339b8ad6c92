"""`ProgramCounts`: what the queries of PySpark programs drop, and the state that Spark keeps for them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial, reduce
from operator import add

from pyspark.sql.streaming.listener import StreamingQueryProgress

from kstreams.dsl.graph import Node
from kstreams.errors import SerdeError
from kstreams.processor.context.failures import Drops
from kstreams.runtime.spark.code.execution import SinkProgram
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.windowed_query import keeps_state
from kstreams.runtime.spark.exchange.reports import StoreSize
from kstreams.runtime.spark.relational.program_sinks import ProgramSink
from kstreams.runtime.spark.step_sensors import StepSensors

logger = logging.getLogger(__name__)

LATE = "late: the watermark of Spark has passed it"
_UNREADABLE = f"failed with {SerdeError.__name__}"


class ProgramCounts:
    """The counts of all queries of one run.

    Parameters
    ----------
    typed : TypedGraph
    drops : Drops
    sensors : StepSensors
    writes_dead_letters : bool
        True if queries of their own count the records that cannot be decoded, which they write.
    """

    def __init__(self, typed: TypedGraph, drops: Drops, sensors: StepSensors, *, writes_dead_letters: bool) -> None:
        self._typed = typed
        self._drops = drops
        self._sensors = sensors
        self._writes_dead_letters = writes_dead_letters
        self._counted_sources = set[str]()

    def of_batches(self, sink: ProgramSink) -> Callable[[StreamingQueryProgress], None]:
        """Return the function that counts each batch of a query. Call it once for each query."""
        keeper = self._keeper_of_state(sink.program.sink.node)
        return partial(self._count, sink.sub_topology, keeper, self._sources_counted_by(sink.program))

    def tell_open_rows(self, counts: Iterable[tuple[ProgramSink, int]]) -> None:
        """Say which queries have results that wait for a later time."""
        for sink, open_rows in counts:
            if open_rows:
                logger.info(
                    "%s: %d windows or rows are still open. They are emitted when all partitions have passed their "
                    "end, or with --until-end",
                    self._keeper_of_state(sink.program.sink.node),
                    open_rows,
                )

    def _sources_counted_by(self, program: SinkProgram) -> frozenset[str]:
        """Return the sources whose unreadable records a query counts: the first that reads them, without letters."""
        names = frozenset(source.name for source in program.streamed_sources)
        new = frozenset() if self._writes_dead_letters else names - self._counted_sources
        self._counted_sources |= names
        return new

    def _count(self, number: int, keeper: str, sources: frozenset[str], batch: StreamingQueryProgress) -> None:
        self._count_state(number, keeper, batch)
        for name, metrics in batch.observedMetrics.items():
            source = name.rpartition("-")[0]
            if source in sources and "unreadable" in metrics and metrics["unreadable"]:
                self._drops.add(source, _UNREADABLE, lambda: f"batch {batch.batchId}", metrics["unreadable"])

    def _count_state(self, number: int, operator: str, batch: StreamingQueryProgress) -> None:
        """Count the rows that Spark has dropped as late in a batch, and measure its state."""
        dropped = sum(state.numRowsDroppedByWatermark for state in batch.stateOperators)
        if dropped:
            self._drops.add(operator, LATE, lambda: "the watermark of Spark", dropped)
        sizes = [
            StoreSize(state.numRowsTotal, state.memoryUsedBytes, state.numRowsUpdated) for state in batch.stateOperators
        ]
        if sizes:
            self._sensors.sizes[f"{number}_all", operator] = reduce(add, sizes)

    def _keeper_of_state(self, sink: Node) -> str:
        """Return the name of the operator before a sink for which Spark keeps state; empty if there is none."""
        return next((node.name for node in self._typed.graph.upstream(sink) if keeps_state(node)), "")
