"""`BatchMeasures`: what Spark measures of the last batch of a query, and what we measure of a step of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import NamedTuple, Self

from pyspark.sql.streaming.listener import StreamingQueryProgress

from kstreams.metrics import catalogue
from kstreams.metrics.template import Tags
from kstreams.metrics.values import MetricValues


class StateSize(NamedTuple):
    """The state of one operator, which Spark keeps: its rows, and the bytes of memory that they take."""

    rows: int
    bytes: int


class BatchMeasures(NamedTuple):
    """The measures of one batch, named as in Spark's `StreamingQueryProgress`.

    Parameters
    ----------
    batch_id : int
    input_rows_per_second, processed_rows_per_second : float
        The rows that came in since the batch before, and those that the batch has processed, per second.
    durations_ms : mapping of str to int
        The duration of each phase; `triggerExecution` is the whole batch.
    states : mapping of str to StateSize
        By operator: the state that Spark keeps. Empty for steps of tasks, whose stores have metrics of their own.
    """

    batch_id: int
    input_rows_per_second: float
    processed_rows_per_second: float
    durations_ms: Mapping[str, int]
    states: Mapping[str, StateSize]

    @classmethod
    def of(cls, progress: StreamingQueryProgress) -> Self:
        """Return the measures that Spark reports of a batch.

        Operators of one name, such as both sides of two joins, are numbered.
        """
        states = {
            f"{number}-{state.operatorName}": StateSize(state.numRowsTotal, state.memoryUsedBytes)
            for number, state in enumerate(progress.stateOperators)
        }
        rates = (progress.inputRowsPerSecond, progress.processedRowsPerSecond)
        input_rate, processed_rate = (rate if isfinite(rate) else 0.0 for rate in rates)
        return cls(progress.batchId, input_rate, processed_rate, progress.durationMs, states)


def batch_metrics(batches: Mapping[str, BatchMeasures], tags: Tags) -> MetricValues:
    """Yield the metrics of the last batches, by the name of the query.

    Examples
    --------
    >>> batch = BatchMeasures(7, 100.0, 250.0, {"addBatch": 40}, {})
    >>> [(metric.name, value) for metric, value in batch_metrics({"shop": batch}, (("client-id", "shop"),))]
    [('batch-id', 7), ('input-rows-per-second', 100.0), ('processed-rows-per-second', 250.0), ('batch-duration-ms', 40)]
    """
    for query, batch in batches.items():
        query_tags = (*tags, ("query", query))
        yield catalogue.BATCH_ID.tagged(query_tags), batch.batch_id
        yield catalogue.INPUT_ROWS_PER_SECOND.tagged(query_tags), batch.input_rows_per_second
        yield catalogue.PROCESSED_ROWS_PER_SECOND.tagged(query_tags), batch.processed_rows_per_second
        for phase, duration_ms in batch.durations_ms.items():
            yield catalogue.BATCH_DURATION.tagged((*query_tags, ("phase", phase))), duration_ms
        for operator, size in batch.states.items():
            yield catalogue.STATE_ROWS.tagged((*query_tags, ("operator", operator))), size.rows
            yield catalogue.STATE_MEMORY.tagged((*query_tags, ("operator", operator))), size.bytes
