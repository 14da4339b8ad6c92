"""`StagedRows`: what tasks wrote in a step, in the checkpoint until the step counts and its rows are published.

An object holds some rows of one writer. It is named by step, writer and a digest of its content, so that attempts that
differ leave different objects. Which of them count is in the list of the step, which is named by its digest, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from kstreams.errors import StateError
from kstreams.kernel.batch import HEADERS_TYPE, Batch, TopicPartition
from kstreams.kernel.decoders import decode_json
from kstreams.runtime.spark.steps import AppliedStep
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage
from kstreams.runtime.spark.storage.opening import open_storage

FOLDER = "outputs"
_SCHEMA = pa.schema(
    [("key", pa.binary()), ("value", pa.binary()), ("timestamp", pa.int64()), ("headers", HEADERS_TYPE)]
)
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")
_TOPIC = b"topic"
_PARTITION = b"partition"


@dataclass(frozen=True)
class StagedRows:
    """The staged rows of one application; driver and executors find them alike.

    Parameters
    ----------
    checkpoint : str
        Absolute path or URI of its checkpoint.
    conf : mapping of str to str
        Settings of Spark.
    """

    checkpoint: str
    conf: Mapping[str, str] = field(default_factory=dict)

    def write(self, step: int, writer: str, batches: Iterable[Batch]) -> str:
        """Keep some rows; the name of the object."""
        raw = _encoded(batches)
        name = f"{FOLDER}/{step:012d}-{writer}-{_digest(raw)}.rows"
        self._storage.write(name, raw)
        return name

    def read(self, name: str) -> Iterator[Batch]:
        """The rows of an object as they were written; StateError when it is missing or damaged."""
        raw = self._whole(name)
        with pa.ipc.open_stream(raw) as stream:
            while True:
                try:
                    rows, place = stream.read_next_batch_with_custom_metadata()
                except StopIteration:
                    return
                yield _batch(rows, place)

    def announce(self, step: int, shares: Sequence[Sequence[str]]) -> str:
        """Keep the list of the objects that count in a step, by publisher; its digest, or nothing without any."""
        if not shares:
            return ""
        raw = msgspec.json.encode(shares)
        self._storage.write(_list_name(step, _digest(raw)), raw)
        return _digest(raw)

    def announced(self, step: AppliedStep) -> list[list[str]]:
        """The objects that count in a step, by publisher."""
        if not step.outputs:
            return []
        return decode_json(self._whole(_list_name(step.number, step.outputs)), list[list[str]])

    def drop(self, names: Iterable[str]) -> None:
        """Delete rows that are published."""
        self._storage.delete(set(names))

    def tidy(self, last: AppliedStep) -> None:
        """Delete what belongs to steps up to the last one, but the list of that step."""
        list_name = _list_name(last.number, last.outputs)
        names = [f"{FOLDER}/{name}" for name in self._storage.names(FOLDER)]
        self._storage.delete([name for name in names if _step(name) <= last.number and name != list_name])

    @property
    def _storage(self) -> CheckpointStorage:
        return open_storage(self.checkpoint, self.conf)

    def _whole(self, name: str) -> bytes:
        """The content of an object, which its name vouches for."""
        place = self._storage.place(name)
        try:
            raw = self._storage.read(name)
        except FileNotFoundError:
            raise StateError(
                f"{place} is missing. It holds results of a step that counts, and may not be in the topics yet: bring "
                "it back, or start anew with --reset."
            ) from None
        if _digest(raw) != name.rpartition("-")[2].partition(".")[0]:
            raise StateError(f"{place} is damaged: it is not what was written. Bring it back, or run with --reset.")
        return raw


def dealt(names: Iterable[str], publishers: int) -> list[list[str]]:
    """Objects by publisher: those of one writer go to one, in order.

    Examples
    --------
    >>> dealt(["outputs/2-0_1-aa.rows", "outputs/2-0_0-bb.rows", "outputs/2-0_1-cc.rows"], 3)
    [['outputs/2-0_0-bb.rows'], ['outputs/2-0_1-aa.rows', 'outputs/2-0_1-cc.rows']]
    """
    of_writer: dict[str, list[str]] = {}
    for name in names:
        of_writer.setdefault(name.split("-")[1], []).append(name)
    shares: list[list[str]] = [[] for _ in range(min(publishers, len(of_writer)))]
    for at, writer in enumerate(sorted(of_writer)):
        shares[at % publishers].extend(of_writer[writer])
    return shares


def _encoded(batches: Iterable[Batch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA, options=_OPTIONS) as stream:
        for batch in batches:
            headers = pa.nulls(len(batch), HEADERS_TYPE) if batch.headers is None else batch.headers
            columns = [batch.keys, batch.values, batch.timestamps, headers]
            place = {_TOPIC: batch.source.topic.encode(), _PARTITION: b"%d" % batch.source.partition}
            stream.write_batch(pa.RecordBatch.from_arrays(columns, schema=_SCHEMA), custom_metadata=place)
    return bytes(sink.getvalue().to_pybytes())


def _batch(rows: pa.RecordBatch, place: Any) -> Batch:
    source = TopicPartition(place[_TOPIC].decode(), int(place[_PARTITION]))
    headers = rows["headers"]
    bare = headers.null_count == len(rows)
    return Batch(source, np.arange(len(rows)), rows["key"], rows["value"], rows["timestamp"], None if bare else headers)


def _list_name(step: int, digest: str) -> str:
    return f"{FOLDER}/{step:012d}-{digest}.json"


def _digest(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


def _step(name: str) -> int:
    return int(name.rpartition("/")[2].partition("-")[0])
