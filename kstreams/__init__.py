"""kstreams: Kafka Streams for Python, on a native runtime and on Spark."""

from kstreams.record import Change, Record, RecordMetadata, ValueAndTimestamp, Window, Windowed

__all__ = ["Change", "Record", "RecordMetadata", "ValueAndTimestamp", "Window", "Windowed"]
