"""`TestInputTopic` and `TestOutputTopic`: the topics that a test writes and reads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from kstreams.errors import SerdeError
from kstreams.kernel.advice import AdvisedCalls
from kstreams.kernel.batch import Row, headers_column, rows_of_headers
from kstreams.kernel.durations import Duration, Time, time_ms, to_ms
from kstreams.record import Headers, Record
from kstreams.serdes import Serde


def exact_time_ms(time: Time) -> int:
    """Return the milliseconds since the epoch of a time that is a whole number of milliseconds.

    Raises
    ------
    TypeError
        For other types, such as a float: its seconds would be taken for milliseconds.
    ValueError
        If a datetime has no time zone, or is finer than a millisecond.

    Examples
    --------
    >>> from datetime import UTC
    >>> exact_time_ms(datetime(1970, 1, 2, tzinfo=UTC)), exact_time_ms(5)
    (86400000, 5)
    """
    if isinstance(time, datetime) and time.microsecond % 1000:
        raise ValueError(f"{time!r} is finer than a millisecond: replace(microsecond=...) with whole milliseconds")
    return time_ms(time)


class TestInputTopic(AdvisedCalls):
    """A topic that the topology reads, for a test to write to; see `TopologyTestDriver.create_input_topic`.

    Records without a timestamp get the topic's own time, which advances by `auto_advance` after each.
    """

    __test__ = False  # pytest must not collect it, despite the name from Kafka Streams

    def __init__(
        self,
        name: str,
        key: Serde,
        value: Serde,
        pipe: Callable[[str, list[Row]], None],
        start_ms: int,
        auto_advance_ms: int,
    ) -> None:
        self.name = name
        self._key = key
        self._value = value
        self._pipe = pipe
        self._now_ms = start_ms
        self._step_ms = auto_advance_ms

    def pipe_input(self, key: object, value: object, timestamp: Time | None = None, headers: Headers = ()) -> None:
        """Process one record; `timestamp` is a datetime or milliseconds."""
        at_ms = self._next_time() if timestamp is None else exact_time_ms(timestamp)
        self.pipe_record(Record(key=key, value=value, timestamp=at_ms, headers=headers))

    def pipe_value(self, value: object, timestamp: Time | None = None) -> None:
        """Process one record without a key."""
        self.pipe_input(None, value, timestamp)

    def pipe_record(self, record: Record[object, object]) -> None:
        """Process one record at its own timestamp.

        Raises
        ------
        ProcessingError
            If a function of the topology raises an error.
        SerdeError
            If key or value do not fit the types of this topic, or of a topic that is written.
        """
        if not isinstance(record, Record):
            raise TypeError(f"pipe_record() takes a ks.Record, not {record!r}: write pipe_input(key, value)")
        self._pipe(self.name, [self.row_of(record)])

    def pipe_key_values(
        self,
        rows: Iterable[tuple[object, object]] | Mapping[object, object],
        start: Time | None = None,
        advance: Duration = 0,
    ) -> None:
        """Process records one by one.

        Parameters
        ----------
        rows : iterable of (key, value), or mapping of keys to values
        start : datetime or int (ms), optional
            Timestamp of the first record. By default, records get the topic's own time.
        advance : timedelta or int (ms)
            The time between two records, if `start` is given.
        """
        first_ms = None if start is None else exact_time_ms(start)
        step_ms = to_ms(advance)
        for number, row in enumerate(rows.items() if isinstance(rows, Mapping) else rows):
            if not (isinstance(row, tuple | list) and len(row) == 2):
                raise TypeError(f"pipe_key_values() takes (key, value) pairs, not {row!r}: write pipe_values(...)")
            key, value = row
            self.pipe_input(key, value, None if first_ms is None else first_ms + number * step_ms)

    def pipe_values(self, values: Iterable[object], start: Time | None = None, advance: Duration = 0) -> None:
        """Process values one by one, without keys; times are as in `pipe_key_values`."""
        self.pipe_key_values(((None, value) for value in values), start, advance)

    def pipe_records(self, records: Iterable[Record[object, object]]) -> None:
        """Process records one by one."""
        for record in records:
            self.pipe_record(record)

    def advance_time(self, duration: Duration) -> None:
        """Advance the topic's own time."""
        self._now_ms += to_ms(duration)

    def row_of(self, record: Record[object, object]) -> Row:
        """Return the record in bytes."""
        key = self._bytes(self._key, record.key, "key")
        value = self._bytes(self._value, record.value, "value")
        at_ms = exact_time_ms(record.timestamp)
        if not (self._key.asks_registry or self._value.asks_registry):
            return Row(key, value, at_ms, record.headers)
        keys, headers = self._key.unframed(pa.array([key], pa.binary()), headers_column([record.headers]))
        values, headers = self._value.unframed(pa.array([value], pa.binary()), headers)
        return Row(keys[0].as_py(), values[0].as_py(), at_ms, () if headers is None else rows_of_headers(headers)[0])

    def _bytes(self, serde: Serde[object], item: object, side: str) -> bytes | None:
        try:
            return None if item is None else serde.serialize(item)
        except Exception as error:
            raise SerdeError(f"The {side} {item!r} for topic {self.name} does not fit {serde}: {error}") from error

    def _next_time(self) -> int:
        now_ms = self._now_ms
        self._now_ms += self._step_ms
        return now_ms

    def __repr__(self) -> str:
        return f"TestInputTopic({self.name!r})"


class TestOutputTopic(AdvisedCalls):
    """A topic that the topology writes, for a test to read; see `TopologyTestDriver.create_output_topic`.

    Each record is read once, the oldest first. All `TestOutputTopic`s of one topic share its queue.
    """

    __test__ = False

    def __init__(self, name: str, key: Serde, value: Serde, queue: deque[Row]) -> None:
        self.name = name
        self._key = key
        self._value = value
        self._queue = queue

    @property
    def queue_size(self) -> int:
        """The number of records that wait to be read."""
        return len(self._queue)

    @property
    def is_empty(self) -> bool:
        """True if no records wait to be read."""
        return not self._queue

    def read_record(self) -> Record[object, object]:
        """Return the next record. Raises LookupError if there is none."""
        if not self._queue:
            raise LookupError(f"Topic {self.name} holds no further record: check is_empty before reading.")
        row = self._queue.popleft()
        key = self._read(self._key, row.key, row.headers)
        value = self._read(self._value, row.value, row.headers)
        return Record(key=key, value=value, timestamp=row.timestamp, headers=row.headers)

    def _read(self, serde: Serde, data: bytes | None, headers: Headers) -> Any:
        if data is None:
            return None
        if not serde.asks_registry:
            return serde.deserialize(data)
        framed = serde.framed(pa.array([data], pa.binary()), headers_column([headers]))
        return serde.deserialize(framed[0].as_py())

    def read_value(self) -> Any:
        """Return the value of the next record."""
        return self.read_record().value

    def read_key_value(self) -> tuple[object, object]:
        """Return key and value of the next record."""
        record = self.read_record()
        return record.key, record.value

    def read_records(self) -> list[Record[object, object]]:
        """Return all waiting records."""
        return [self.read_record() for _ in range(len(self._queue))]

    def read_values(self) -> list[object]:
        """Return the values of all waiting records."""
        return [record.value for record in self.read_records()]

    def read_key_values(self) -> list[tuple[object, object]]:
        """Return (key, value) of all waiting records."""
        return [(record.key, record.value) for record in self.read_records()]

    def read_key_values_to_map(self) -> dict[object, object]:
        """Return the last value of each key. Raises LookupError for a record with no key, or with an unhashable one."""
        records = self.read_records()
        if any(record.key is None for record in records):
            raise LookupError(
                f"Topic {self.name} holds a record without a key, which a map cannot hold: "
                "read the topic by read_key_values()."
            )
        for record in records:
            if not isinstance(record.key, Hashable):
                raise LookupError(
                    f"Topic {self.name} holds the key {record.key!r}, which cannot be hashed, so that no map holds it: "
                    "read the topic by read_key_values()."
                )
        return {record.key: record.value for record in records}

    def __repr__(self) -> str:
        return f"TestOutputTopic({self.name!r}, {len(self._queue)} records)"
