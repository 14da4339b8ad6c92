"""`merge_small_files`: small Parquet files of each folder become one, and a crash in the middle is finished later."""

from __future__ import annotations

import os
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from kstreams.connectors.files.folders import Folder, State, StorageOptions, open_folder
from kstreams.connectors.files.sink import STATES
from kstreams.kernel.decoders import decode_json

_STATE = f"{STATES}/merge.state"
_SUFFIX = ".parquet"


class Exchange(msgspec.Struct, frozen=True):
    """Files that one merged file replaces.

    Parameters
    ----------
    number : int
        How many exchanges there were before.
    merged : str
        The staged name of the merged file.
    target : str
        Its final name, which is that of the first file that it replaces.
    replaced : tuple of str
        The other files that it replaces.
    """

    number: int
    merged: str
    target: str
    replaced: tuple[str, ...]


class _Stored(NamedTuple):
    number: int
    state: State | None


def merge_small_files(
    location: str | os.PathLike[str], *, target_bytes: int, options: StorageOptions | None = None
) -> int:
    """Merge files and return how many were replaced. `ks.sinks.merge_files` describes the parameters."""
    folder = open_folder(location, options)
    stored = _finished(folder)
    replaced_files = 0
    for group in _groups(folder.sizes(), target_bytes):
        stored = _exchanged(folder, group, stored)
        replaced_files += len(group)
    return replaced_files


def _finished(folder: Folder) -> _Stored:
    """Finish the exchange of a process that ended in the middle."""
    state = folder.read_state(_STATE)
    if state is None:
        return _Stored(0, None)
    exchange = decode_json(state.content, Exchange)
    _finish(folder, exchange)
    return _Stored(exchange.number + 1, state)


def _groups(sizes: dict[str, int], target_bytes: int) -> Iterator[list[str]]:
    """Return the small files that are merged with each other: neighbours of one folder, in the order of their names."""
    by_folder: dict[str, list[str]] = defaultdict(list)
    for name in sorted(sizes):
        if name.endswith(_SUFFIX) and not name.startswith(STATES) and sizes[name] < target_bytes / 2:
            by_folder[name.rpartition("/")[0]].append(name)
    for names in by_folder.values():
        group: list[str] = []
        for name in names:
            if group and sum(sizes[member] for member in group) + sizes[name] > target_bytes:
                yield from _several(group)
                group = []
            group.append(name)
        yield from _several(group)


def _several(group: list[str]) -> Iterator[list[str]]:
    if len(group) > 1:
        yield group


def _exchanged(folder: Folder, group: Sequence[str], stored: _Stored) -> _Stored:
    merged = f"{STATES}/merge.staged/{stored.number}-{uuid.uuid4().hex}"  # another merge may run at the same time
    tables = [_read(folder, name) for name in group]
    schema = pa.unify_schemas([table.schema for table in tables])
    with closing(folder.create(merged)) as stream, pq.ParquetWriter(stream, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(pa.concat_tables([schema.empty_table(), table], promote_options="default"))
    exchange = Exchange(stored.number, merged, group[0], tuple(group[1:]))
    state = folder.replace_state(_STATE, msgspec.json.encode(exchange), stored.state)
    _finish(folder, exchange)
    return _Stored(stored.number + 1, state)


def _read(folder: Folder, name: str) -> pa.Table:
    with folder.open(name) as stream:
        return pq.ParquetFile(stream).read()


def _finish(folder: Folder, exchange: Exchange) -> None:
    """Exchange the files, unless this is done: the staged file is moved last, and is then gone."""
    if exchange.merged not in folder.sizes(f"{STATES}/merge.staged"):
        return
    folder.delete(exchange.replaced)
    folder.move(exchange.merged, exchange.target)
