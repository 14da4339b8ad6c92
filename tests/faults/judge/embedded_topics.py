"""The topics of an embedded log, read and written by docs/reference/log-format.md alone."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import struct
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import google_crc32c
import pyarrow as pa

from tests.faults.judge.records import Partition, Record, Row, partition_of

_FRAME = struct.Struct("<4sHHIIqqqqqqqIIII")
_HEAD = struct.Struct("<4sI16sqqqqqqq4xI")
_SCHEMA = pa.schema(
    [pa.field("key", pa.binary()), pa.field("value", pa.binary()), pa.field("timestamp", pa.int64(), nullable=False)]
)
_HEADERS, _OFFSETS, _COMPRESSED = 1, 2, 12
_HEADERS_FIELD = pa.field("headers", pa.list_(pa.struct([pa.field("name", pa.utf8()), pa.field("value", pa.binary())])))
_OFFSETS_FIELD = pa.field("offset_delta", pa.int64(), nullable=False)


class DamagedError(Exception):
    """Bytes that do not follow docs/reference/log-format.md."""


class Head(NamedTuple):
    """The start and the end of a partition."""

    start: int
    end: int
    segment: int
    position: int
    created: int
    greatest_time: int
    synced: int


class Transactions(NamedTuple):
    """The states of transactions at one moment."""

    states: dict[int, str]
    settled: int

    def state(self, transaction: int) -> str:
        """`open`, `committed` or `aborted`."""
        if transaction in self.states:
            return self.states[transaction]
        if transaction < self.settled:
            return "committed"
        raise DamagedError(f"no transaction {transaction} was ever begun")


class EmbeddedTopics:
    """The topics of a log.

    Parameters
    ----------
    folder : str
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._next_offsets: dict[Partition, int] = {}
        self._positions: dict[Partition, tuple[str, int]] = {}

    def write(self, rows: Iterable[Row]) -> None:
        """Append rows, one frame for each partition."""
        by_partition: dict[Path, list[Row]] = {}
        for row in rows:
            folders = self._partitions(row.topic)
            by_partition.setdefault(folders[partition_of(row.key, len(folders))], []).append(row)
        for folder, its_rows in by_partition.items():
            _append(folder, its_rows)

    def poll(self, topic: str) -> list[Record]:
        """Return the committed records that were not returned before."""
        folders = self._partitions(topic)
        heads = [_read_head(folder) for folder in folders]
        transactions = self._transactions()  # after the heads: the row of a transaction is older than its frames
        records: list[Record] = []
        for number, (folder, head) in enumerate(zip(folders, heads, strict=True)):
            records += self._poll_partition(Partition(topic, number), folder, head, transactions)
        return records

    def _poll_partition(
        self, partition: Partition, folder: Path, head: Head, transactions: Transactions
    ) -> Iterator[Record]:
        offset = max(self._next_offsets.get(partition, 0), head.start)
        while offset < head.end:
            path = folder / f"{_segment_of(folder, offset):020d}.log"
            raw = path.read_bytes()[: head.position] if int(path.stem) == head.segment else path.read_bytes()
            name, position = self._positions.get(partition, ("", 0))
            position = position if name == path.name else 0
            while position < len(raw):
                header, body = _frame_at(raw, position, path)
                position += _FRAME.size + header[3]
                if header[10]:
                    state = transactions.state(header[10])
                    if state == "open":
                        return
                if header[6] > offset and (not header[10] or state == "committed"):
                    yield from (each for each in _records(partition, header, body) if each.offset >= offset)
                offset = max(offset, header[6])
                self._next_offsets[partition], self._positions[partition] = offset, (path.name, position)

    def _partitions(self, topic: str) -> list[Path]:
        folders = sorted((self._folder / "topics").glob(f"{topic}@*"), key=lambda path: int(path.name.split("@")[-1]))
        return sorted(folders[-1].iterdir(), key=lambda path: int(path.name)) if folders else []

    def _transactions(self) -> Transactions:
        with closing(sqlite3.connect(f"file:{self._folder / 'catalogue.sqlite'}?mode=ro", uri=True, timeout=60)) as db:
            db.execute("BEGIN")
            states = dict(db.execute("SELECT id, state FROM transactions").fetchall())
            marks = dict(db.execute("SELECT name, value FROM marks").fetchall())
        return Transactions(states, int(marks.get("settled", 0)))


def _segment_of(folder: Path, offset: int) -> int:
    return max(int(path.stem) for path in folder.glob("*.log") if int(path.stem) <= offset)


def _frame_at(raw: bytes, position: int, path: Path) -> tuple[tuple, bytes]:
    header = _FRAME.unpack_from(raw, position)
    body = raw[position + _FRAME.size : position + _FRAME.size + header[3]]
    is_sound = (
        header[0] == b"KSLF"
        and google_crc32c.value(raw[position : position + _FRAME.size - 4]) == header[15]
        and len(body) == header[3]
        and google_crc32c.value(body) == header[14]
    )
    if not is_sound:
        raise DamagedError(f"{path}: no sound frame at byte {position}")
    return header, body


def _records(partition: Partition, header: tuple, body: bytes) -> Iterator[Record]:
    flags, base = header[2], header[5]
    fields = [*_SCHEMA]
    fields += [_HEADERS_FIELD] if flags & _HEADERS else []
    fields += [_OFFSETS_FIELD] if flags & _OFFSETS else []
    batch = pa.ipc.read_record_batch(pa.py_buffer(body), pa.schema(fields))
    deltas = batch["offset_delta"].to_pylist() if flags & _OFFSETS else range(len(batch))
    keys, values = batch["key"].to_pylist(), batch["value"].to_pylist()
    for delta, key, value in zip(deltas, keys, values, strict=True):
        yield Record(partition, base + delta, key, value)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    file = os.open(folder / "lock", os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _read_head(folder: Path) -> Head:
    for _ in range(1000):
        raw = (folder / "head").read_bytes()
        if len(raw) == _HEAD.size and google_crc32c.value(raw[:-4]) == _HEAD.unpack(raw)[-1]:
            return Head(*_HEAD.unpack(raw)[3:10])
    raise DamagedError(f"{folder / 'head'} is not sound")


def _append(folder: Path, rows: list[Row]) -> None:
    batch = pa.record_batch(
        [
            pa.array([row.key for row in rows], pa.binary()),
            pa.array([row.value for row in rows], pa.binary()),
            pa.array([row.timestamp for row in rows], pa.int64()),
        ],
        schema=_SCHEMA,
    )
    body = batch.serialize().to_pybytes()
    times = [row.timestamp for row in rows]
    with _locked(folder):
        head = _read_head(folder)
        start = (b"KSLF", 1, 0, len(body), len(rows), head.end, head.end + len(rows), min(times), max(times))
        header = _FRAME.pack(*start, 0, 0, 0, 0, 0, google_crc32c.value(body), 0)[:-4]
        frame = header + google_crc32c.value(header).to_bytes(4, "little") + body
        with (folder / f"{head.segment:020d}.log").open("r+b") as segment:
            segment.truncate(head.position)
            segment.seek(head.position)
            segment.write(frame)
        _publish(folder, head, len(rows), len(frame), max(times))


def _publish(folder: Path, head: Head, rows: int, size: int, greatest_time: int) -> None:
    grown = head._replace(
        end=head.end + rows,
        position=head.position + size,
        created=head.created or 1,
        greatest_time=max(head.greatest_time, greatest_time),
    )
    boot = bytes.fromhex(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""))
    raw = _HEAD.pack(b"KSLH", 1, boot, *grown, 0)[:-4]
    with (folder / "head").open("r+b") as file:
        file.write(raw + google_crc32c.value(raw).to_bytes(4, "little"))
