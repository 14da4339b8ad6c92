"""`StagedRows`: the rows that tasks wrote in a step, in the checkpoint until the step is committed and published.

An object holds rows of one writer. Its name contains the step, the writer and a digest of the content, so that attempts
that differ write different objects. The list of a step says which objects are valid; its name also contains a digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

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
    """The staged rows of one query, for driver and executors.

    Parameters
    ----------
    checkpoint : str
        The absolute path or URI of the folder.
    conf : mapping of str to str
        Settings of Spark.
    """

    checkpoint: str
    conf: Mapping[str, str] = field(default_factory=dict)

    def write(self, step: int, writer: str, batches: Iterable[Batch]) -> str:
        """Write rows to an object, and return its name."""
        raw = _encoded(batches)
        name = f"{FOLDER}/{step:012d}-{writer}-{_digest(raw)}.rows"
        self._storage.write(name, raw)
        return name

    def read(self, name: str) -> Iterator[Batch]:
        """Yield the batches of an object. Raises StateError if it is missing or damaged."""
        raw = self._whole(name)
        with pa.ipc.open_stream(raw) as stream:
            while True:
                try:
                    rows, metadata = stream.read_next_batch_with_custom_metadata()
                except StopIteration:
                    return
                yield _batch(rows, metadata)

    def announce(self, step: int, shares: Sequence[Sequence[str]]) -> str:
        """Write the list of a step's valid objects by publisher, and return its digest; empty if there are none."""
        if not shares:
            return ""
        raw = msgspec.json.encode(shares)
        self._storage.write(_list_name(step, _digest(raw)), raw)
        return _digest(raw)

    def announced(self, step: AppliedStep) -> list[list[str]]:
        """Return the valid objects of a step by publisher."""
        if not step.outputs:
            return []
        return decode_json(self._whole(_list_name(step.number, step.outputs)), list[list[str]])

    def claim(self, step: int, publisher: int, transactional_id: str) -> str:
        """Let one share of a step be published with this transactional id, and return the id of the first claim."""
        return self._storage.publish(_claim_name(step, publisher), transactional_id.encode()).decode()

    def delete_published(self, step: int, shares: Sequence[Sequence[str]]) -> None:
        """Delete the published objects of a step, and the claims of its publishers."""
        claims = {_claim_name(step, publisher) for publisher in range(len(shares))}
        self._storage.delete(claims.union(*shares))

    def clean_up(self, last: AppliedStep) -> None:
        """Delete all objects of steps up to the last one, except for the list of the last step."""
        list_name = _list_name(last.number, last.outputs)
        names = [f"{FOLDER}/{name}" for name in self._storage.names(FOLDER)]
        self._storage.delete([name for name in names if _step(name) <= last.number and name != list_name])

    @property
    def _storage(self) -> CheckpointStorage:
        return open_storage(self.checkpoint, self.conf)

    def _whole(self, name: str) -> bytes:
        """Return the content of an object after checking it against the digest in the name."""
        location = self._storage.location_of(name)
        try:
            raw = self._storage.read(name)
        except FileNotFoundError:
            raise StateError(
                f"{location} is missing. It holds results of a committed step, which may not be in the topics yet. "
                f"{_REMEDY}"
            ) from None
        if _digest(raw) != name.rpartition("-")[2].partition(".")[0]:
            raise StateError(f"{location} is damaged: its content does not fit its digest. {_REMEDY}")
        return raw


_REMEDY = "Restore it from a copy, or start anew with --reset."


def shares_of(names: Iterable[str], publishers: int) -> list[list[str]]:
    """Divide objects among publishers. The objects of one writer go to one publisher, in order.

    Examples
    --------
    >>> shares_of(["outputs/2-0_1-aa.rows", "outputs/2-0_0-bb.rows", "outputs/2-0_1-cc.rows"], 3)
    [['outputs/2-0_0-bb.rows'], ['outputs/2-0_1-aa.rows', 'outputs/2-0_1-cc.rows']]
    """
    names_by_writer: dict[str, list[str]] = {}
    for name in names:
        names_by_writer.setdefault(name.split("-")[1], []).append(name)
    shares: list[list[str]] = [[] for _ in range(min(publishers, len(names_by_writer)))]
    for index, writer in enumerate(sorted(names_by_writer)):
        shares[index % publishers].extend(names_by_writer[writer])
    return shares


def _encoded(batches: Iterable[Batch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA, options=_OPTIONS) as stream:
        for batch in batches:
            columns = [batch.keys, batch.values, batch.timestamps, batch.headers_or_nulls]
            metadata = {_TOPIC: batch.source.topic.encode(), _PARTITION: b"%d" % batch.source.partition}
            stream.write_batch(pa.RecordBatch.from_arrays(columns, schema=_SCHEMA), custom_metadata=metadata)
    return bytes(sink.getvalue().to_pybytes())


def _batch(rows: pa.RecordBatch, metadata: Mapping[bytes, bytes]) -> Batch:
    source = TopicPartition(metadata[_TOPIC].decode(), int(metadata[_PARTITION]))
    headers = rows["headers"]
    has_headers = headers.null_count < len(rows)
    offsets = np.arange(len(rows))
    return Batch(source, offsets, rows["key"], rows["value"], rows["timestamp"], headers if has_headers else None)


def _claim_name(step: int, publisher: int) -> str:
    return f"{FOLDER}/{step:012d}-{publisher}.claim"


def _list_name(step: int, digest: str) -> str:
    return f"{FOLDER}/{step:012d}-{digest}.json"


def _digest(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


def _step(name: str) -> int:
    return int(name.rpartition("/")[2].partition("-")[0])
