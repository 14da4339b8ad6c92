"""One flipped bit anywhere is told, with file, place and offset; the process lives; nothing sound is lost."""

import json
import random
from pathlib import Path

import pytest

from kstreams.errors import CorruptLogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log, verify
from kstreams.log.embedded.segments.frame import HEADER_SIZE
from tests.log.contract.reading import drain
from tests.log.embedded.files import flip, head, run, segments

SOURCE = TopicPartition("words", 0)
FRAMES, ROWS = 5, 20


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A log with five frames of twenty records in one segment."""
    with open_log(tmp_path) as log:
        log.admin().create_topic("words", config={"compression.type": getattr(request, "param", "none")})
        with log.producer({"linger.ms": -1}) as producer:
            for i in range(FRAMES):
                for j in range(ROWS):
                    headers = [("n", b"%d" % j)] if i == 3 else []
                    producer.send("words", b"key-%d" % j, b"%d" % (i * ROWS + j), headers=headers, timestamp=i)
                producer.flush()
    return tmp_path


def frame_starts(folder: Path) -> list[int]:
    raw = segments(folder)[0].read_bytes()
    return [place for place in range(0, len(raw), 8) if raw[place : place + 4] == b"KSLF"]


# Flips bit after bit and says for each what verify and a reader saw.
FLIPPER = """
import json, sys
from pathlib import Path
from kstreams.kernel.batch import TopicPartition
from kstreams.errors import CorruptLogError, LogFormatError
from kstreams.log import open_log, verify
from tests.log.embedded.files import flip, segments
folder, bits = Path(sys.argv[1]), json.loads(sys.argv[2])
path = segments(folder)[0]
source = TopicPartition("words", 0)
log = open_log(folder)
for bit in bits:
    flip(path, bit)
    damage = verify(folder)
    seen, error = [], ""
    with log.consumer() as consumer:
        consumer.assign([source])
        try:
            while batches := consumer.poll():
                seen += [int(row.value) for batch in batches for row in batch.rows()]
        except (CorruptLogError, LogFormatError) as e:
            error = str(e)
        after = []
        if damage:
            consumer.seek(source, min(damage[0].offset + 20, 100))
            while batches := consumer.poll():
                after += [int(row.value) for batch in batches for row in batch.rows()]
    print(json.dumps([bit, [list(d) for d in damage], seen, error, after]))
    flip(path, bit)
assert verify(folder) == []
"""


def check_flips(folder: Path, bits: list[int]) -> None:
    starts = frame_starts(folder)
    path = str(segments(folder)[0])
    lines = run(FLIPPER, folder, json.dumps(bits)).splitlines()
    assert len(lines) == len(bits)
    for bit, damage, seen, error, after in map(json.loads, lines):
        frame = max(i for i, place in enumerate(starts) if place <= bit // 8)
        (file, position, offset, _), *more = damage
        assert (file, position, offset, more) == (path, starts[frame], frame * ROWS, []), bit
        assert path in error, bit
        assert f"offset {offset}" in error, bit
        assert f"byte {position}" in error, bit
        assert seen == list(range(frame * ROWS)), bit
        assert after == list(range((frame + 1) * ROWS, FRAMES * ROWS)), bit


@pytest.mark.slow
def test_every_bit_of_a_middle_header_and_of_the_last(folder: Path) -> None:
    starts = frame_starts(folder)
    check_flips(folder, [(starts[i] * 8) + bit for i in (2, FRAMES - 1) for bit in range(HEADER_SIZE * 8)])


@pytest.mark.parametrize("folder", ["none", "lz4", "zstd"], indirect=True)
def test_bits_anywhere(folder: Path) -> None:
    size = segments(folder)[0].stat().st_size
    check_flips(folder, random.Random(7).sample(range(size * 8), 200))


def test_what_comes_before_the_damage_is_read_and_what_comes_after_can_be_sought(folder: Path) -> None:
    flip(segments(folder)[0], frame_starts(folder)[2] * 8 + 3)
    with open_log(folder) as log, log.consumer() as consumer:
        consumer.assign([SOURCE])
        assert [int(row.value) for batch in consumer.poll(max_records=40) for row in batch.rows()] == list(range(40))
        for _ in range(2):
            with pytest.raises(CorruptLogError, match="byte"):
                consumer.poll()
        consumer.seek(SOURCE, 60)
        assert [int(row.value) for row in drain(consumer)] == list(range(60, 100))


def test_damage_in_the_last_frame_is_not_taken_for_a_torn_write(folder: Path) -> None:
    path = segments(folder)[0]
    flip(path, (path.stat().st_size - 5) * 8)
    damage = verify(folder)
    size = path.stat().st_size
    with open_log(folder) as log, log.producer() as producer:
        producer.send("words", b"k", b"later")
        producer.flush()
        assert path.stat().st_size > size
        assert verify(folder) == damage
        with log.consumer() as consumer:
            consumer.assign([SOURCE])
            consumer.seek(SOURCE, 100)
            assert [row.value for row in drain(consumer)] == [b"later"]


def test_every_bit_of_the_head_is_harmless_and_told(folder: Path) -> None:
    with open_log(folder) as log:
        for bit in range(head(folder).stat().st_size * 8):
            flip(head(folder), bit)
            assert [Path(damage.file) for damage in verify(folder)] == [head(folder)]
            with log.consumer() as consumer:
                consumer.assign([SOURCE])
                assert [int(row.value) for row in drain(consumer)] == list(range(100))
            assert verify(folder) == []


def test_a_segment_that_was_cut_from_outside_is_told(folder: Path) -> None:
    path = segments(folder)[0]
    with path.open("r+b") as file:
        file.truncate(frame_starts(folder)[3])
    assert [(Path(damage.file), damage.offset) for damage in verify(folder)] == [(path, -1)]
    with open_log(folder) as log, log.consumer() as consumer, log.producer() as producer:
        consumer.assign([SOURCE])
        with pytest.raises(CorruptLogError, match="missing"):
            consumer.poll()
        producer.send("words", b"k", b"v")
        with pytest.raises(CorruptLogError, match="cut from outside"):
            producer.flush()


def test_an_active_segment_that_is_missing_is_told(folder: Path) -> None:
    path = segments(folder)[0]
    with open_log(folder) as log, log.consumer() as consumer:
        consumer.assign([SOURCE])
        path.unlink()
        with pytest.raises(CorruptLogError, match="missing"):
            consumer.poll()
        assert [Path(damage.file) for damage in verify(folder)] == [path]


def test_a_segment_that_is_missing_is_told(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.admin().create_topic("words", config={"segment.bytes": "1024"})
        with log.producer() as producer:
            for i in range(50):
                producer.send("words", b"k", b"%d" % i)
                producer.flush()
        files = segments(tmp_path)
        files[len(files) // 2].unlink()
        (damage,) = verify(tmp_path)
        assert "missing" in damage.what
        with log.consumer() as consumer:
            consumer.assign([SOURCE])
            with pytest.raises(CorruptLogError, match=f"offset {damage.offset}"):
                drain(consumer, max_records=1)
