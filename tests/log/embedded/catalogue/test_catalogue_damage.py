"""A catalogue that is damaged, lost in part or older than its segments: mended exactly, or refused; never believed."""

import sqlite3
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import google_crc32c
import pytest

from kstreams.cli.main import main
from kstreams.errors import ConfigError, CorruptLogError, LogError
from kstreams.log import open_log, verify
from kstreams.log.api import OffsetAndMetadata
from kstreams.log.embedded.upkeep.consistency import repair
from tests.log.contract.reading import values_of
from tests.log.embedded.files import flip, head, run, segments, start
from tests.log.embedded.killed_log import SOURCE, WRITER, copy, state


@pytest.mark.parametrize(
    ("name", "stride"),
    [
        ("catalogue.sqlite-wal", 997),
        ("catalogue.sqlite", 997),
        ("catalogue.journal", 67),
        ("catalogue.sqlite-shm", 2999),
    ],
)
def test_no_flipped_bit_changes_what_the_catalogue_says(killed: Path, tmp_path: Path, name: str, stride: int) -> None:
    whole = state(copy(killed, tmp_path / "log"))
    assert whole[2] == {SOURCE: OffsetAndMetadata(5, "to 4")}
    for place in range(0, (killed / name).stat().st_size, stride):
        folder = copy(killed, tmp_path / "log")
        flip(folder / name, place * 8 + place % 8)
        assert state(folder) == whole, place
        assert verify(folder) == []


def test_a_flip_in_the_write_ahead_log_is_told(killed: Path, tmp_path: Path) -> None:
    folder = copy(killed, tmp_path / "log")
    assert verify(folder) == []
    flip(folder / "catalogue.sqlite-wal", 8 * (32 + 24 + 100))
    assert [Path(damage.file).name for damage in verify(folder)] == ["catalogue.sqlite"]


def test_a_table_that_was_dropped_is_told_and_put_back(
    killed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copy(killed, tmp_path / "log")
    whole = state(copy(killed, tmp_path / "whole"))
    with sqlite3.connect(folder / "catalogue.sqlite") as database:
        database.execute("DROP TABLE offsets")
    database.close()
    assert main(["log", "verify", "--json", "--log-dir", str(folder)]) == 1
    assert "catalogue.sqlite" in capsys.readouterr().out
    assert state(folder) == whole
    assert verify(folder) == []


def test_rows_that_someone_changed_are_put_back(killed: Path, tmp_path: Path) -> None:
    folder = copy(killed, tmp_path / "log")
    with sqlite3.connect(folder / "catalogue.sqlite") as database:
        database.execute("UPDATE offsets SET next_offset = 1")
        database.execute("UPDATE topics SET partitions = 1000000000")
    database.close()
    assert verify(folder) != []
    assert state(folder) == state(copy(killed, tmp_path / "whole"))


@pytest.mark.parametrize("lost", ["catalogue.sqlite", "catalogue.sqlite-wal"])
def test_a_database_that_is_older_than_its_journal_is_brought_up_to_date(
    killed: Path, tmp_path: Path, lost: str
) -> None:
    folder = copy(killed, tmp_path / "log")
    (folder / lost).unlink()
    assert state(folder) == state(copy(killed, tmp_path / "whole"))


def test_a_catalogue_that_is_older_than_its_segments_is_refused_until_someone_accepts_the_loss(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    with open_log(folder) as log:
        log.admin().create_topic("words")
    run(WRITER, folder, 0, 2)
    open_log(folder).close()
    kept = {name: (folder / name).read_bytes() for name in ("catalogue.sqlite", "catalogue.journal")}
    run(WRITER, folder, 2, 4)
    for path in folder.glob("catalogue.sqlite-*"):
        path.unlink()
    for name, raw in kept.items():
        (folder / name).write_bytes(raw)
    assert "not in the catalogue" in verify(folder)[0].what
    with pytest.raises(CorruptLogError, match="kstreams log repair"):
        open_log(folder)
    assert any("2 transactions are aborted" in sentence for sentence in repair(folder))
    with open_log(folder) as log:
        assert values_of(log, "words") == [b"0", b"1"]
        assert log.admin().committed("g", [SOURCE]) == {SOURCE: OffsetAndMetadata(2, "to 1")}
        log.clean()  # forgets what was committed, and only that
    run(WRITER, folder, 2, 3)
    with open_log(folder) as log:
        log.clean()
        assert values_of(log, "words") == [b"0", b"1", b"2"]
    assert verify(folder) == []


def test_what_a_power_failure_took_from_the_catalogue_is_aborted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "log"
    with open_log(folder) as log:
        log.admin().create_topic("words")
    kept = {name: (folder / name).read_bytes() for name in ("catalogue.sqlite", "catalogue.journal")}
    run(WRITER, folder, 0, 2)
    for path in folder.glob("catalogue.sqlite-*"):
        path.unlink()
    (folder / "catalogue.sqlite").write_bytes(kept["catalogue.sqlite"])
    (folder / "catalogue.journal").write_bytes(from_another_boot(kept["catalogue.journal"]))
    with pytest.raises(CorruptLogError, match="older than its segments"):
        open_log(folder, durability="fsync")
    with open_log(folder) as log:
        assert "2 transactions are aborted" in caplog.text
        log.clean()
        log.producer({"transactional.id": "app"}).close()
        assert values_of(log, "words") == []


def test_neither_copy_is_believed_when_both_are_damaged(killed: Path, tmp_path: Path) -> None:
    folder = copy(killed, tmp_path / "log")
    flip(folder / "catalogue.sqlite-wal", 8 * (32 + 24 + 100))
    flip(folder / "catalogue.journal", 8 * ((folder / "catalogue.journal").stat().st_size - 5))
    with pytest.raises(CorruptLogError, match="kstreams log repair"):
        open_log(folder)
    assert repair(folder) != []
    assert verify(folder) == []


@pytest.mark.parametrize("lost", [["catalogue.journal"], ["catalogue.journal", "catalogue.sqlite"]])
def test_a_catalogue_that_is_missing_is_not_begun_anew(killed: Path, tmp_path: Path, lost: Sequence[str]) -> None:
    folder = copy(killed, tmp_path / "log")
    for name in lost:
        (folder / name).unlink()
    with pytest.raises(CorruptLogError, match=r"[Pp]ut back"):
        open_log(folder)
    assert (folder / "catalogue.journal").exists() is False


HOLDS = "import sys; from kstreams.log import open_log; open_log(sys.argv[1]); print(1, flush=True); sys.stdin.read()"


def test_damage_while_others_have_it_open_is_refused(killed: Path, tmp_path: Path) -> None:
    folder = copy(killed, tmp_path / "log")
    holder = start(HOLDS, folder)
    assert holder.stdout is not None
    holder.stdout.readline()
    (folder / "catalogue.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(LogError, match="stop all processes"):
        open_log(folder)
    holder.kill()
    holder.communicate()
    assert state(folder) == state(copy(killed, tmp_path / "whole"))


def test_a_topic_has_a_number_of_partitions_that_a_disk_can_bear(tmp_path: Path) -> None:
    with open_log(tmp_path) as log, pytest.raises(ConfigError, match="10000"):
        log.admin().create_topic("words", 10**9)


def rewrite_head(folder: Path) -> None:
    flip(head(folder), 8 * 40)


def truncate_index(folder: Path) -> None:
    segments(folder)[0].with_suffix(".index").write_bytes(bytes(33))


@pytest.mark.parametrize(("damage", "file"), [(rewrite_head, "head"), (truncate_index, ".index")])
def test_verify_names_heads_and_indexes(
    killed: Path, tmp_path: Path, damage: Callable[[Path], None], file: str
) -> None:
    folder = copy(killed, tmp_path / "log")
    damage(folder)
    assert {Path(found.file).name[-len(file) :] for found in verify(folder)} == {file}


def from_another_boot(raw: bytes) -> bytes:
    """A journal as if it had been written before the machine was started."""
    found, place = b"", 0
    while place < len(raw):
        (size,) = struct.unpack_from("<I", raw, place + 32)
        record = bytearray(raw[place : place + 40 + size])
        record[16:32] = b"another boot 123"
        record[36:40] = struct.pack("<I", google_crc32c.value(bytes(record[:36] + record[40:])))
        found, place = found + bytes(record), place + 40 + size
    return found
