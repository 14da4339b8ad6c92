"""`FileSink`: rows as Parquet, JSON or CSV files. One state per task names the offset and the files of a commit.

A commit takes three steps. The rows are written to staged files, whose names no reader of data looks for. Then the
state of the task is replaced, if no other writer has replaced it: this is the commit. Then the staged files are moved
to their final names. A writer that finds staged files in the state moves them when it is opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import quote

import msgspec
import numpy as np
import pyarrow as pa

from kstreams.connectors.api import Offsets, RefusedRow, Sink, SinkBatch, SinkTask
from kstreams.connectors.files.folders import Folder, NewFile, State, StorageOptions, open_folder
from kstreams.connectors.files.formats import TableWriter, format_named
from kstreams.connectors.rows import PartitionBy, RowColumns, derivations_of, names_of
from kstreams.errors import ConnectorError, ConnectorUnavailableError, FencedError
from kstreams.kernel.decoders import decode_json
from kstreams.kernel.durations import Duration, to_ms

STATES = "_kstreams"
"""The folder of the states and the staged files."""

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The name of a partition without value, as in Hive and Spark."""

_ROW_GROUP_ROWS = 1 << 17
"""Rows are gathered to this number before they are written, which keeps row groups large."""


class CommittedFiles(msgspec.Struct, frozen=True):
    """What a task has committed.

    Parameters
    ----------
    epoch : int
        How often a writer was opened. Staged files are named after it.
    commits : int
        How often rows were committed.
    next_offset : int or None
    files : tuple of pairs
        The staged and the final names of the last commit's files.
    """

    epoch: int = 0
    commits: int = 0
    next_offset: int | None = None
    files: tuple[tuple[str, str], ...] = ()


class FileSink(Sink):
    """Files in a folder, partitioned as in Hive. `ks.sinks.files` describes the parameters."""

    def __init__(
        self,
        location: str | os.PathLike[str],
        *,
        format: str = "parquet",
        partition_by: PartitionBy | None = None,
        key: str | Sequence[str] | None = None,
        timestamp: str | None = None,
        compression: str | None = None,
        roll_rows: int = 500_000,
        roll_bytes: int = 128 << 20,
        roll_interval: Duration = timedelta(minutes=1),
        options: StorageOptions | None = None,
    ) -> None:
        if roll_rows < 1 or roll_bytes < 1:
            raise ConnectorError(f"{location}: roll_rows and roll_bytes are to be 1 or more.")
        self.location = os.fspath(location)
        self.format, self.compression = format_named(format, compression)
        self.partition_by = derivations_of(partition_by)
        self.columns = RowColumns(key=names_of(key), timestamp=timestamp, derived=self.partition_by)
        self.roll_rows = roll_rows
        self.roll_bytes = roll_bytes
        self.commit_rows = roll_rows
        self.commit_interval_ms = to_ms(roll_interval)
        self._options = options

    def __repr__(self) -> str:
        return f"files({self.location!r}, format={self.format.suffix[1:]!r})"

    @property
    def suffix(self) -> str:
        """The end of the names of files."""
        return self.format.suffix + self.format.compressions[self.compression]

    def folder(self) -> Folder:
        """Return the folder of the files."""
        return open_folder(self.location, self._options)

    def open(self, task: SinkTask) -> FileSinkWriter:
        return FileSinkWriter(self, task)


class FileSinkWriter:
    """Writes one topic partition to files. Opening it fences earlier writers of the task."""

    def __init__(self, sink: FileSink, task: SinkTask) -> None:
        self._sink = sink
        self._folder = sink.folder()
        self._name = quote(task.id, safe="")
        self._stored = _claimed(self._folder, f"{STATES}/{self._name}.state")
        self._finish_commit()
        self._delete_staged_files_of_earlier_writers()
        self._open_files: dict[tuple[str, pa.Schema], _StagedFile] = {}
        self._closed_files: list[_ClosedFile] = []
        self._created_files = 0

    def next_offset(self) -> int | None:
        return self._state.next_offset

    def write(self, batch: SinkBatch) -> None:
        present = batch.values.is_valid().to_numpy(zero_copy_only=False)
        rows = self._sink.columns.of(batch)
        offsets = batch.offsets
        if not present.all():
            rows = rows.filter(pa.array(present))
            offsets = offsets[present]
        for part in _partitions(rows, offsets, list(self._sink.partition_by)):
            self._append(part.folder, part.rows, part.offsets)

    def flush(self) -> Sequence[RefusedRow]:
        for place in list(self._open_files):
            self._close_file(place)
        return ()

    def commit(self, next_offset: int) -> None:
        self.flush()
        files = tuple((file.staged, self._final_name(file)) for file in self._closed_files)
        state = CommittedFiles(self._state.epoch, self._state.commits + 1, next_offset, files)
        self._stored = _replaced(self._folder, f"{STATES}/{self._name}.state", state, self._stored)
        self._closed_files.clear()
        self._finish_commit()

    def close(self) -> None:
        names = [file.abandon() for file in self._open_files.values()]
        names += [file.staged for file in self._closed_files]
        self._open_files.clear()
        self._closed_files.clear()
        with suppress(ConnectorUnavailableError, OSError):  # the next writer deletes them
            self._folder.delete(names)

    @property
    def _state(self) -> CommittedFiles:
        return self._stored.state

    def _finish_commit(self) -> None:
        for staged, final in self._state.files:
            self._folder.move(staged, final)

    def _delete_staged_files_of_earlier_writers(self) -> None:
        self._folder.delete(list(self._folder.sizes(f"{STATES}/{self._name}.staged")))

    def _append(self, folder: str, rows: pa.RecordBatch, offsets: Offsets) -> None:
        place = folder, rows.schema
        while len(rows):
            if place not in self._open_files:
                self._open_files[place] = self._new_file(folder, rows.schema)
            file = self._open_files[place]
            count = min(len(rows), self._sink.roll_rows - file.rows)
            file.append(rows.slice(0, count), offsets[:count])
            rows = rows.slice(count)
            offsets = offsets[count:]
            if file.rows >= self._sink.roll_rows or file.size() >= self._sink.roll_bytes:
                self._close_file(place)

    def _new_file(self, folder: str, schema: pa.Schema) -> _StagedFile:
        self._created_files += 1
        name = f"{STATES}/{self._name}.staged/{self._state.epoch}-{self._created_files}"
        stream = self._folder.create(name)
        return _StagedFile(name, folder, stream, self._sink.format.open(stream, schema, self._sink.compression))

    def _close_file(self, place: tuple[str, pa.Schema]) -> None:
        self._closed_files.append(self._open_files.pop(place).finish())

    def _final_name(self, file: _ClosedFile) -> str:
        """Return a name that no other file has: the offsets of two files of a folder do not overlap."""
        offsets = f"{file.first_offset:012d}-{file.last_offset:012d}"
        return f"{file.folder}{self._name}-{offsets}{self._sink.suffix}"


class _ClosedFile(NamedTuple):
    staged: str
    folder: str
    first_offset: int
    last_offset: int


class _StagedFile:
    """A file that is being written. Rows are gathered to large row groups."""

    def __init__(self, name: str, folder: str, stream: NewFile, writer: TableWriter) -> None:
        self._name = name
        self._folder = folder
        self._stream = stream
        self._writer = writer
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_rows = 0
        self._gathered_bytes = 0
        self._first_offset = -1
        self._last_offset = -1
        self.rows = 0

    def append(self, rows: pa.RecordBatch, offsets: Offsets) -> None:
        if not self.rows:
            self._first_offset = int(offsets[0])
        self._last_offset = int(offsets[-1])
        self.rows += len(rows)
        self._gathered.append(rows)
        self._gathered_rows += len(rows)
        self._gathered_bytes += rows.nbytes
        if self._gathered_rows >= _ROW_GROUP_ROWS:
            self._write_gathered()

    def size(self) -> int:
        """Return the bytes of the file so far; rows that are not written yet count as they lie in memory."""
        return self._stream.tell() + self._gathered_bytes

    def finish(self) -> _ClosedFile:
        self._write_gathered()
        self._writer.close()
        self._stream.close()
        return _ClosedFile(self._name, self._folder, self._first_offset, self._last_offset)

    def abandon(self) -> str:
        """Release the stream, and return the name of the file, which is to be deleted."""
        with suppress(OSError, pa.ArrowException):
            self._writer.close()
        self._stream.discard()
        return self._name

    def _write_gathered(self) -> None:
        if self._gathered:
            self._writer.write(pa.Table.from_batches(self._gathered))
        self._gathered.clear()
        self._gathered_rows = 0
        self._gathered_bytes = 0


class _StoredState(NamedTuple):
    state: CommittedFiles
    stored: State


def _claimed(folder: Folder, name: str) -> _StoredState:
    """Begin an epoch of the task, so that earlier writers can no longer commit."""
    while True:
        stored = folder.read_state(name)
        state = CommittedFiles() if stored is None else decode_json(stored.content, CommittedFiles)
        next_state = msgspec.structs.replace(state, epoch=state.epoch + 1)
        with suppress(FencedError):  # another writer was opened at the same time: the last one wins
            return _StoredState(next_state, folder.replace_state(name, msgspec.json.encode(next_state), stored))


def _replaced(folder: Folder, name: str, state: CommittedFiles, expected: _StoredState) -> _StoredState:
    return _StoredState(state, folder.replace_state(name, msgspec.json.encode(state), expected.stored))


class _Part(NamedTuple):
    folder: str
    rows: pa.RecordBatch
    offsets: Offsets


def _partitions(rows: pa.RecordBatch, offsets: Offsets, columns: list[str]) -> Iterator[_Part]:
    """Return the rows of each partition without the partition columns, in their order."""
    if not columns:
        yield _Part("", rows, offsets)
        return
    codes = np.zeros(len(rows), np.int64)
    texts = []
    for name in columns:
        encoded = rows.column(_position(rows, name)).dictionary_encode(null_encoding="encode")
        codes = codes * max(1, len(encoded.dictionary)) + encoded.indices.to_numpy(zero_copy_only=False)
        texts.append([_folder_of(name, value) for value in _as_texts(encoded.dictionary)])
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    sorted_rows = rows.drop_columns(columns).take(pa.array(order))
    starts = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
    for start, end in pairwise([*starts, len(codes)]):
        part = sorted_rows.slice(start, end - start)
        yield _Part(_folder_name(int(codes[start]), texts), part, offsets[order[start:end]])


def _position(rows: pa.RecordBatch, name: str) -> int:
    position = rows.schema.get_field_index(name)
    if position < 0:
        raise ConnectorError(
            f"partition_by names the column {name!r}, but the rows have {', '.join(rows.schema.names)}. "
            "A column by expression is written as partition_by={'name': expression}."
        )
    return int(position)


def _folder_name(code: int, texts: Sequence[Sequence[str]]) -> str:
    folders: list[str] = []
    for folder_names in reversed(texts):
        code, position = divmod(code, max(1, len(folder_names)))
        folders.insert(0, folder_names[position])
    return "/".join(folders) + "/"


def _folder_of(name: str, value: str | None) -> str:
    text = NULL_PARTITION if value is None else quote(value, safe=" @+,()'!")
    return f"{quote(name, safe='')}={text}"


def _as_texts(column: pa.Array) -> list[str | None]:
    return column.cast(pa.string()).to_pylist()  # type: ignore[no-any-return]
