"""`dump`: shows the frames of a log's files as dictionaries."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.embedded.segments.frame import FrameHeader
from kstreams.log.embedded.segments.partition import decode_head, segment_bases
from kstreams.log.embedded.segments.segment import Segment, segment_path
from kstreams.log.embedded.upkeep.consistency import partition_folders

Json = dict[str, object]


def dump(folder: str | Path, *, records: bool = True, topic: str | None = None) -> Iterator[Json]:
    """Yield every published frame, also hidden and aborted ones, as dictionaries for JSON.

    Parameters
    ----------
    folder : str or Path
        A log's folder.
    records : bool
        Whether to include the records of each frame: keys and values as text if they are UTF-8, else in base64.
    topic : str or None
        Only this topic.

    Raises
    ------
    CorruptLogError
        At the first damaged frame, after those before it were yielded.

    Examples
    --------
    >>> import tempfile
    >>> from kstreams.log import open_log
    >>> folder = tempfile.mkdtemp()
    >>> with open_log(folder) as log:
    ...     log.admin().create_topic("words")
    ...     with log.producer() as producer:
    ...         producer.send("words", b"a", b"1", timestamp=5)
    >>> [(frame["base_offset"], frame["records"][0]["key"]) for frame in dump(folder)]
    [(0, 'a')]
    """
    for path, source in partition_folders(Path(folder)):
        if topic is None or source.topic == topic:
            yield from _dump_partition(path, source, records)


def _dump_partition(folder: Path, source: TopicPartition, records: bool) -> Iterator[Json]:
    head = decode_head((folder / "head").read_bytes())
    for base in segment_bases(folder):
        segment = Segment(segment_path(folder, base), source)
        if head is not None and base == head.segment:
            segment.map(head.position)
        else:
            segment.map_all()
        for position, header in segment.frames():
            batch = segment.checked_body(position, header)
            yield _frame(segment.path, position, source, header) | ({"records": _records(batch)} if records else {})


def _frame(path: Path, position: int, source: TopicPartition, header: FrameHeader) -> Json:
    fields = header._asdict()
    del fields["flags"], fields["records"]
    location = {"topic": source.topic, "partition": source.partition, "file": str(path), "position": position}
    return location | fields | {"compression": header.compression, "count": header.records}


def _records(batch: Batch) -> list[Json]:
    return [
        {
            "offset": offset,
            "timestamp": row.timestamp,
            "key": _text(row.key),
            "value": _text(row.value),
            "headers": [[name, _text(value)] for name, value in row.headers],
        }
        for offset, row in zip(batch.offsets.tolist(), batch.rows(), strict=True)
    ]


def _text(raw: bytes | None) -> str | Json | None:
    if raw is None:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode()}
