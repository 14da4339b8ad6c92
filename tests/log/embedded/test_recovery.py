"""When the head cannot be believed the end of the log is found again; only a torn end is cut."""

import logging
import struct
from pathlib import Path

import pytest

from kstreams.errors import CorruptLogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log, verify
from kstreams.log.embedded.segments.partition import decode_head
from tests.log.contract.reading import drain, values_of
from tests.log.embedded.files import flip, head, segments

SOURCE = TopicPartition("words", 0)
ALL = [b"%d" % i for i in range(60)]


@pytest.fixture(params=["os", "fsync"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A log with sixty frames of one record in several segments."""
    with open_log(tmp_path, durability=request.param) as log:
        log.admin().create_topic("words", config={"segment.bytes": "4096"})
        with log.producer() as producer:
            for value in ALL:
                producer.send("words", b"k", value)
                producer.flush()
    assert len(segments(tmp_path)) > 2
    return tmp_path


def append(path: Path, raw: bytes) -> None:
    with path.open("ab") as file:
        file.write(raw)


def tear(folder: Path) -> None:
    """Leave half a frame at the end, as a writer does that dies while it writes."""
    last = segments(folder)[-1]
    append(last, last.read_bytes()[:120])


def reboot(folder: Path) -> None:
    """Make the head look as if it came from another boot of the machine."""
    import google_crc32c

    raw = bytearray(head(folder).read_bytes())
    raw[8:24] = bytes(16)
    raw[-4:] = struct.pack("<I", google_crc32c.value(bytes(raw[:-4])))
    head(folder).write_bytes(raw)


def test_the_torn_end_of_a_dead_writer_is_not_seen_and_cut_by_the_next(folder: Path) -> None:
    size = segments(folder)[-1].stat().st_size
    tear(folder)
    assert verify(folder) == []
    with open_log(folder) as log:
        assert values_of(log, "words") == ALL
        with log.producer() as producer:
            producer.send("words", b"k", b"next")
        assert values_of(log, "words") == [*ALL, b"next"]
    assert verify(folder) == []
    assert segments(folder)[-1].stat().st_size < size + 1000


@pytest.mark.parametrize("lose", ["delete", "garble", "reboot"])
@pytest.mark.parametrize("torn", [False, True])
def test_without_a_head_the_log_is_read_to_its_end(
    folder: Path, lose: str, torn: bool, caplog: pytest.LogCaptureFixture
) -> None:
    if torn:
        tear(folder)
    {
        "delete": lambda: head(folder).write_bytes(b""),
        "garble": lambda: flip(head(folder), 300),
        "reboot": lambda: reboot(folder),
    }[lose]()
    with open_log(folder) as log, caplog.at_level(logging.WARNING):
        assert values_of(log, "words") == ALL
        with log.producer() as producer:
            producer.send("words", b"k", b"next")
        assert values_of(log, "words") == [*ALL, b"next"]
    assert any("torn" in record.getMessage() for record in caplog.records) == torn
    assert verify(folder) == []


def test_damage_before_sound_frames_is_kept_when_the_head_is_lost(folder: Path) -> None:
    last = segments(folder)[-1]
    first_offset = int(last.stem)
    flip(last, 8 * 100)
    size = last.stat().st_size
    head(folder).write_bytes(b"")
    with open_log(folder) as log:
        with log.consumer() as consumer:
            consumer.assign([SOURCE])
            consumer.seek(SOURCE, first_offset)
            with pytest.raises(CorruptLogError, match=f"offset {first_offset}"):
                consumer.poll()
            consumer.seek(SOURCE, first_offset + 1)
            assert [row.value for row in drain(consumer)] == ALL[first_offset + 1 :]
        assert log.admin().end_offsets([SOURCE]) == {SOURCE: 60}
    assert last.stat().st_size == size
    assert [damage.offset for damage in verify(folder)] == [first_offset]


def test_what_was_synced_before_a_reboot_is_damaged_not_torn(tmp_path: Path) -> None:
    with open_log(tmp_path, durability="fsync") as log:
        log.admin().create_topic("words")
        with log.producer() as producer:
            for value in ALL:
                producer.send("words", b"k", value)
                producer.flush()
    (path,) = segments(tmp_path)
    size = path.stat().st_size
    flip(path, 8 * (size - 3))
    reboot(tmp_path)
    with open_log(tmp_path) as log, log.consumer() as consumer:
        consumer.assign([SOURCE])
        assert [row.value for batch in consumer.poll() for row in batch.rows()] == ALL[:-1]
        with pytest.raises(CorruptLogError):
            consumer.poll()
    assert path.stat().st_size == size


def test_the_start_that_records_were_deleted_to_outlives_the_head(folder: Path) -> None:
    with open_log(folder) as log:
        log.admin().delete_records({SOURCE: 31})
    head(folder).write_bytes(b"")
    with open_log(folder) as log:
        assert log.admin().beginning_offsets([SOURCE]) == {SOURCE: 31}
        assert values_of(log, "words") == ALL[31:]


def test_a_segment_that_a_dead_writer_began_is_no_trouble(folder: Path) -> None:
    last = segments(folder)[-1]
    (last.parent / f"{60:020d}.log").touch()
    with open_log(folder) as log, log.producer() as producer:
        assert values_of(log, "words") == ALL
        for i in range(60, 120):
            producer.send("words", b"k", b"%d" % i)
            producer.flush()
        assert values_of(log, "words") == [b"%d" % i for i in range(120)]
    head(folder).write_bytes(b"")
    with open_log(folder) as log:
        assert values_of(log, "words") == [b"%d" % i for i in range(120)]
    assert verify(folder) == []


def test_the_head_says_where_the_log_ends(folder: Path) -> None:
    found = decode_head(head(folder).read_bytes())
    assert found is not None
    assert (found.end_offset, found.segment) == (60, int(segments(folder)[-1].stem))
    assert found.position == segments(folder)[-1].stat().st_size
