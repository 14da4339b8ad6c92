"""Records that Spark cannot decode: Python decodes them again, for the error and dead letters of the native engine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kstreams.errors import KStreamsError, SerdeError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import SystemClock
from kstreams.processor.api.error_handlers import OFFSET, PARTITION, TOPIC, ErrorHandlerContext
from kstreams.processor.context.encoded_rows import EncodedRows, send_partitioned
from kstreams.processor.context.failures import DeadLetters, Drops, ErrorPolicies, Failures, place_of
from kstreams.processor.task.inputs import RecordDecoder
from kstreams.processor.topology.nodes import SourceNode
from kstreams.record import Record
from kstreams.runtime.spark.cluster.shipping import pack, unpack
from kstreams.runtime.spark.exchange.blocks import BLOCK_SCHEMA, Block, in_arrow
from kstreams.runtime.spark.exchange.reports import TaskReport, as_kstreams_error, report, taken_reports
from kstreams.runtime.spark.exchange.rows import ArrowFunction
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.io.output_topics import StepOutput
from kstreams.runtime.spark.io.source import LogInputPartition, TopicReader
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.step_input import StepInput
from kstreams.runtime.spark.steps import AppliedStep
from kstreams.runtime.spark.tasks.task_run import RowCollector

_PLACE = re.compile(r"cannot read (\S+)-(\d+)@(\d+)")
"""The text with which a program ends at a record that it cannot decode."""

_READABLE = (
    "Spark cannot read {place}, which tasks read: an integer of more than 64 bits, a Decimal in another notation than "
    "Python's, or a datetime with more than six digits of a second. Set spark.kstreams.path=task."
)


class UnreadableRecords:
    """The records that the programs of an application cannot decode.

    Parameters
    ----------
    home : HomeAddress
    sources : mapping of str to SourceNode
        The source that reads each topic, by the name of the topic in the log.
    """

    def __init__(self, home: HomeAddress, sources: Mapping[str, SourceNode]) -> None:
        self._home = home
        self._sources = sources

    def error_of(self, error: Exception) -> KStreamsError:
        """Return the error of a query; for a record that Spark cannot decode, the one of the native engine."""
        place = _PLACE.search(str(error))
        if place is None or place[1] not in self._sources:
            return as_kstreams_error(error)
        source = TopicPartition(place[1], int(place[2]))
        offset = int(place[3])
        topics = TopicReader(self._home, [source.topic], 1)
        [batch] = topics.read(LogInputPartition(source, offset, offset + 1))
        errors = RecordDecoder(self._sources[source.topic]).failing_rows(batch)
        return errors.get(0) or KStreamsError(_READABLE.format(place=f"{source}@{offset}"))


class DeadLetterSteps:
    """The `StepExecutor` of the query that writes the dead letters of a source.

    Parameters
    ----------
    program : Program
    sub_topology : int
        The number of the sub-topology that reads the source.
    source : SourceNode
    topic : str
        The topic of the dead letters, without the prefix.
    """

    def __init__(self, program: Program, sub_topology: int, source: SourceNode, topic: str) -> None:
        self._packed = pack(_LetterWriting(program, sub_topology, source))
        self._is_in_delta = program.routes.to_delta(topic)

    def run(self, step_input: StepInput) -> tuple[DataFrame, list[TaskReport], AppliedStep]:
        """Write the letters of a batch."""
        columns = [F.col("key"), F.col("value"), F.unix_millis("timestamp").alias("timestamp"), F.col("headers")]
        rows = step_input.required_rows().select(*columns)
        blocks = rows.mapInArrow(_letters_in_arrow(self._packed, step_input.output), BLOCK_SCHEMA)
        if self._is_in_delta:
            blocks = step_input.persisted(blocks)
        return blocks, taken_reports(blocks), AppliedStep(step_input.number)


class _LetterWriting(NamedTuple):
    """What an executor needs to write the dead letters of one source.

    Parameters
    ----------
    program : Program
    sub_topology : int
    source : SourceNode
    """

    program: Program
    sub_topology: int
    source: SourceNode

    def write(self, records: Iterable[Mapping[str, Any]], collector: RowCollector) -> TaskReport:
        """Let the handler decide about records that Spark cannot decode, whose headers say where they were."""
        drops = Drops(f"the dead letters of {self.source.name}", SystemClock(), 0)
        for record in records:
            batch = _batch_of(record)
            letters = DeadLetters(partial(_send, collector, batch.source.partition))
            failures = Failures(
                ErrorPolicies.of(self.program.config), drops, letters, {self.source.name: self.source.declared_at}
            )
            self._handle(batch, failures)
            failures.send_letters()
        dropped = [(operator, reason, count) for (operator, reason), count in drops.counts.items()]
        return TaskReport(dropped, written=collector.written)

    def _handle(self, batch: Batch, failures: Failures) -> None:
        task = f"{self.sub_topology}_{batch.source.partition}"
        context = ErrorHandlerContext.of_row(batch, 0, self.source.name, task)
        is_readable = SerdeError(_READABLE.format(place=place_of(context)))
        error = RecordDecoder(self.source).failing_rows(batch).get(0, is_readable)
        raw = Record(key=context.source_raw_key, value=context.source_raw_value, timestamp=context.timestamp)
        failures.deserialization(context, raw, error)


def _send(collector: RowCollector, partition: int, topic: str, letters: EncodedRows) -> None:
    send_partitioned(collector, topic, letters, partition)


def _batch_of(record: Mapping[str, Any]) -> Batch:
    """Return a record in the place that its headers name."""
    places = {header["key"]: header["value"].decode() for header in record["headers"]}
    source = TopicPartition(places[TOPIC], int(places[PARTITION]))
    offsets = np.array([int(places[OFFSET])])
    key, value = (pa.array([record[side]], pa.binary()) for side in ("key", "value"))
    return Batch(source, offsets, key, value, pa.array([record["timestamp"]], pa.int64()))


def _letters_in_arrow(packed: bytes, output: StepOutput) -> ArrowFunction:
    """Return the function that writes the dead letters of records; only the report of a finished task counts."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
        writing: _LetterWriting = unpack(packed)
        context = TaskContext.get()
        number = context.partitionId() if context else 0
        with output.writer(f"{writing.source.name}_r{number}") as writer:
            collector = RowCollector(writing.program, writer, writing.sub_topology, number)
            written = writing.write((record for batch in batches for record in batch.to_pylist()), collector)
            yield from collector.drain()
            yield report(number, msgspec.structs.replace(written, outputs=writer.prepare()))

    return lambda batches: in_arrow(write(batches))
