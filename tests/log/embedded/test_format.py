"""The files are as docs/reference/log-format.md says: checked here by reading them without our own code."""

import io
import sqlite3
import stat
import struct
from pathlib import Path

import google_crc32c
import numpy as np
import pyarrow as pa
import pytest

from kstreams.errors import ConfigError, LogError, LogFormatError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log import dump, open_log, verify
from tests.log.contract.reading import values_of
from tests.log.embedded.files import head, segments

SOURCE = TopicPartition("words", 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with open_log(tmp_path / "log") as log:
        log.admin().create_topic("words")
        with log.producer(
            {"transactional.id": "app", "linger.ms": 60_000}
        ) as producer:  # one frame, whatever takes long
            producer.begin_transaction()
            producer.send("words", b"a", b"1", timestamp=5)
            producer.send("words", None, b"\xff", timestamp=3, headers=[("h", b"x")])
            producer.commit_transaction()
        with log.producer({"compression.type": "zstd"}) as producer:
            producer.send("words", b"b", None, timestamp=9)
    return tmp_path / "log"


def test_a_frame_byte_by_byte(folder: Path) -> None:
    raw = segments(folder)[0].read_bytes()
    magic, version, flags, body_size, records = struct.unpack_from("<4sHHII", raw)
    assert (magic, version, flags, records) == (b"KSLF", 1, 1, 2)
    base, following, least, most, producer, transaction, horizon = struct.unpack_from("<7q", raw, 16)
    assert (base, following, least, most, producer, horizon) == (0, 2, 3, 5, 1, 0)
    assert transaction > 0
    epoch, sequence, body_crc, header_crc = struct.unpack_from("<iIII", raw, 72)
    assert (epoch, sequence > 0) == (0, True)
    assert header_crc == google_crc32c.value(raw[:84])
    body = raw[88 : 88 + body_size]
    assert body_crc == google_crc32c.value(body)
    headers = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
    fields = [("key", pa.binary()), ("value", pa.binary()), ("timestamp", pa.int64()), ("headers", headers)]
    table = pa.ipc.read_record_batch(pa.py_buffer(body), pa.schema(fields)).to_pydict()
    assert (table["key"], table["value"], table["timestamp"]) == ([b"a", None], [b"1", b"\xff"], [5, 3])
    second = 88 + body_size
    assert struct.unpack_from("<4sHH", raw, second) == (b"KSLF", 1, 8)
    assert struct.unpack_from("<q", raw, second + 16) == (2,)


def test_the_head_byte_by_byte(folder: Path) -> None:
    raw = head(folder).read_bytes()
    magic, version = struct.unpack_from("<4sI", raw)
    assert (magic, version, len(raw)) == (b"KSLH", 1, 88)
    start, end, segment, position, _, greatest, synced = struct.unpack_from("<7q", raw, 24)
    assert (start, end, segment, position, synced) == (0, 3, 0, segments(folder)[0].stat().st_size, 0)
    assert greatest == 9
    assert struct.unpack_from("<I", raw, 84) == (google_crc32c.value(raw[:84]),)


def test_dump_shows_what_is_there(folder: Path) -> None:
    first, second = dump(folder)
    assert (first["base_offset"], first["next_offset"], first["count"], first["compression"]) == (0, 2, 2, "none")
    assert first["records"] == [
        {"offset": 0, "timestamp": 5, "key": "a", "value": "1", "headers": []},
        {"offset": 1, "timestamp": 3, "key": None, "value": {"base64": "/w=="}, "headers": [["h", "x"]]},
    ]
    assert (second["compression"], second["position"]) == ("zstd", 88 + first["body_size"])
    assert "records" not in next(dump(folder, records=False))
    assert list(dump(folder, topic="other")) == []


def test_files_are_for_their_owner_alone(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_newer_log_is_refused(folder: Path) -> None:
    connection = sqlite3.connect(folder / "catalogue.sqlite")
    connection.execute("PRAGMA user_version = 8")
    connection.close()
    with pytest.raises(LogFormatError, match="Upgrade"):
        open_log(folder)


def test_a_newer_frame_is_refused_and_not_called_damage(folder: Path) -> None:
    path = segments(folder)[0]
    raw = bytearray(path.read_bytes())
    raw[4] = 2
    raw[84:88] = struct.pack("<I", google_crc32c.value(bytes(raw[:84])))
    path.write_bytes(raw)
    with open_log(folder) as log, pytest.raises(LogFormatError, match="Upgrade"):
        values_of(log, "words")


def test_a_damaged_catalogue_is_told_and_mended(folder: Path) -> None:
    for path in folder.glob("catalogue.sqlite-*"):
        path.unlink()
    with (folder / "catalogue.sqlite").open("r+b") as file:
        file.write(bytes(64))
    assert "catalogue" in verify(folder)[0].file
    with open_log(folder) as log:
        assert list(log.admin().topics()) == ["words"]
    assert verify(folder) == []


def test_a_sound_frame_around_bytes_that_are_no_arrow_is_damage(folder: Path) -> None:
    path = segments(folder)[0]
    raw = bytearray(path.read_bytes())
    size = struct.unpack_from("<I", raw, 8)[0]
    raw[88 : 88 + size] = bytes(size)
    raw[80:84] = struct.pack("<I", google_crc32c.value(bytes(raw[88 : 88 + size])))
    raw[84:88] = struct.pack("<I", google_crc32c.value(bytes(raw[:84])))
    path.write_bytes(raw)
    assert "Arrow" in verify(folder)[0].what


def test_places_that_hold_no_log_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="kafka:localhost:9092"):
        open_log("kafka://localhost:9092")
    with pytest.raises(ConfigError, match="durability"):
        open_log(tmp_path, durability="raid")
    with pytest.raises(LogError, match="no log"):
        verify(tmp_path)


def test_batches_look_into_the_mapped_file(tmp_path: Path) -> None:
    values = pa.array([b"x" * 1000] * 1000, pa.binary())
    with open_log(tmp_path) as log:
        log.admin().create_topic("words")
        with log.producer() as producer:
            producer.send_batch(Batch(SOURCE, np.arange(1000), values, values, pa.array(np.arange(1000))).slice(0, 400))
        with log.consumer() as consumer:
            before = pa.total_allocated_bytes()
            consumer.assign([SOURCE])
            batches = consumer.poll()
            assert sum(map(len, batches)) == 400
            assert pa.total_allocated_bytes() == before


def test_a_dump_can_be_written_as_json(folder: Path) -> None:
    import json

    out = io.StringIO()
    for frame in dump(folder):
        json.dump(frame, out)
    assert out.getvalue().count('"topic": "words"') == 2
