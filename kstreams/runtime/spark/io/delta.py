"""`DeltaSink`: the rows of a step appended to Delta tables, one per topic, typed where the type is known.

A table takes each step once: Delta keeps the number of the last transaction of an application (`txnAppId`,
`txnVersion`) and ignores one that it has.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from kstreams.processor.topology.topology import SinkNode
from kstreams.runtime.spark.io.arrow_types import typed_column
from kstreams.runtime.spark.program import Program
from kstreams.serdes import Serde

Column = Callable[[pa.Array], pa.Array]


class DeltaSink:
    """Delta tables `<folder>/<topic>` with the columns key, value, timestamp and partition.

    Parameters
    ----------
    session : SparkSession
    folder : Path
    program : Program
        Its sinks say which types the topics hold; a topic that several types are written to stays binary.
    application : str
        Names this history of steps.
    """

    def __init__(self, session: SparkSession, folder: Path, program: Program, application: str) -> None:
        self._session, self._folder, self._application = session, folder, application
        self._serdes: dict[str, tuple[Serde[Any] | None, Serde[Any] | None]] = {}
        for sub in program.sub_topologies:
            for sink in sub.sinks:
                self._learn(sink)

    def apply(self, step: int, rows: pa.Table) -> None:
        """Append the rows of a step to the tables of their topics."""
        for topic in pc.unique(rows["topic"]).to_pylist():
            table = self._typed(topic, rows.filter(pc.equal(rows["topic"], topic)))
            writer = self._session.createDataFrame(table).coalesce(1).write.format("delta").mode("append")
            versioned = writer.option("txnAppId", self._application).option("txnVersion", step)
            versioned.save(str(self._folder / topic))

    def _learn(self, sink: SinkNode) -> None:
        if isinstance(sink.topic, str):
            serdes = (sink.key, sink.value)
            known = self._serdes.setdefault(sink.topic, serdes)
            if known != serdes:
                self._serdes[sink.topic] = (None, None)

    def _typed(self, topic: str, rows: pa.Table) -> pa.Table:
        key, value = self._serdes.get(topic, (None, None))
        rows = rows.sort_by([("partition", "ascending"), ("origin", "ascending"), ("offset", "ascending")])
        return pa.table(
            {
                "key": typed_column(key, rows["key"].combine_chunks()),
                "value": typed_column(value, rows["value"].combine_chunks()),
                "timestamp": rows["timestamp"].cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC")),
                "partition": rows["partition"],
            }
        )
