"""Connectors: sources that write the data of other systems to topics, and sinks that write topics to other systems.

`api.py` is the interface of every connector. Workers run connectors beside the tasks of an application, and alone.
"""

from kstreams.connectors.api import (
    RefusedRow,
    Sink,
    SinkBatch,
    SinkTask,
    SinkWriter,
    Source,
    SourceBatch,
    SourceReader,
    UnreadableRow,
)

__all__ = [
    "RefusedRow",
    "Sink",
    "SinkBatch",
    "SinkTask",
    "SinkWriter",
    "Source",
    "SourceBatch",
    "SourceReader",
    "UnreadableRow",
]
