"""A catalogue that is damaged, lost in part or older than its segments: mended exactly, or refused; never believed."""

import os
import shutil
import sqlite3
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import google_crc32c
import pytest

from kstreams.batch import TopicPartition
from kstreams.cli.main import main
from kstreams.errors import ConfigError, CorruptLogError, LogError
from kstreams.log import open_log, verify
from kstreams.log.api import OffsetAndMetadata
from kstreams.log.embedded.disk import Disk
from kstreams.log.embedded.upkeep.repair import repair
from tests.log.contract.reading import values_of
from tests.log.embedded.files import flip, head, run, segments, start

SOURCE = TopicPartition("words", 0)
WRITER = """
import os, sys
from kstreams.batch import TopicPartition
from kstreams.log import open_log
from kstreams.log.api import OffsetAndMetadata
log = open_log(sys.argv[1])
source = TopicPartition("words", 0)
producer = log.producer({"transactional.id": "app"})
for i in range(int(sys.argv[2]), int(sys.argv[3])):
    producer.begin_transaction()
    producer.send("words", b"k", b"%d" % i)
    producer.commit_transaction({source: OffsetAndMetadata(i + 1, f"to {i}")}, "g")
os._exit(0)  # as a process that is killed: nothing is closed
"""
State = tuple[object, ...]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log whose writer was killed: its last two transactions are in the write-ahead log alone."""
    folder = tmp_path_factory.mktemp("killed")
    with open_log(folder) as log:
        log.admin().create_topic("words")
        log.admin().create_topic("gone")
        log.admin().delete_topic("gone")
    run(WRITER, folder, 0, 3)
    open_log(folder).close()
    run(WRITER, folder, 3, 5)
    return folder


def copy(folder: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    return Path(shutil.copytree(folder, to))


def state(folder: Path) -> State:
    """All that a user may see of the catalogue."""
    with open_log(folder) as log, log.admin() as admin:
        topics = {name: (topic.partitions, dict(topic.config)) for name, topic in admin.topics().items()}
        return topics, admin.groups(), admin.committed("g", [SOURCE]), values_of(log, "words")


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
    assert "does not know" in verify(folder)[0].what
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


class Killing(Disk):
    """Dies while it writes to the journal: `share` of what it writes is there, nothing of what comes after."""

    def __init__(self, share: float, of: int) -> None:
        self.share, self.left = share, of

    def write_at(self, fd: int, parts: Sequence[Any], position: int) -> None:
        raw = b"".join(bytes(part) for part in parts)
        if raw[:4] == b"KSLJ":
            self.left -= 1
            if self.left < 0:
                super().write_at(fd, [raw[: int(len(raw) * self.share)]], position)
                os._exit(0)
        super().write_at(fd, [raw], position)


DYING = """
import sys
from kstreams.batch import TopicPartition
from kstreams.log import open_log
from kstreams.log.api import OffsetAndMetadata
from tests.log.embedded.test_catalogue_damage import Killing
log = open_log(sys.argv[1], disk=Killing(float(sys.argv[2]), 3))
producer = log.producer({"transactional.id": "app"})
producer.begin_transaction()
producer.send("words", b"k", b"1")
producer.commit_transaction({TopicPartition("words", 0): OffsetAndMetadata(7, "")}, "g")
sys.exit(1)
"""


@pytest.mark.parametrize(("share", "is_committed"), [(1.0, True), (0.9, False), (0.01, False), (0.0, False)])
@pytest.mark.parametrize("somebody_has_it_open", [True, False])
def test_a_process_that_dies_between_the_copies_leaves_one_truth(
    tmp_path: Path, share: float, is_committed: bool, somebody_has_it_open: bool
) -> None:
    with open_log(tmp_path) as log:
        log.admin().create_topic("words")
        if somebody_has_it_open:
            run(DYING, tmp_path, share)
            log.admin().commit("other", {SOURCE: OffsetAndMetadata(1, "")})  # takes over what the dead one left
            seen = log.admin().committed("g", [SOURCE])
    if not somebody_has_it_open:
        run(DYING, tmp_path, share)
    with open_log(tmp_path) as log:
        log.producer({"transactional.id": "app"}).close()
        expected = {SOURCE: OffsetAndMetadata(7, "")} if is_committed else {}
        assert log.admin().committed("g", [SOURCE]) == expected
        assert values_of(log, "words") == ([b"1"] if is_committed else [])
    assert not somebody_has_it_open or seen == expected
    assert verify(tmp_path) == []


class FullDisk(Disk):
    """Takes half of a record of the journal, then is full."""

    is_full = False

    def write_at(self, fd: int, parts: Sequence[Any], position: int) -> None:
        if self.is_full and bytes(parts[0])[:4] == b"KSLJ":
            super().write_at(fd, [bytes(parts[0])[:20]], position)
            raise OSError(28, "No space left on device")
        super().write_at(fd, parts, position)


def test_a_commit_that_the_disk_refuses_is_none(tmp_path: Path) -> None:
    disk = FullDisk()
    with open_log(tmp_path, disk=disk) as log, log.admin() as admin:
        admin.create_topic("words")
        admin.commit("g", {SOURCE: OffsetAndMetadata(1, "")})
        disk.is_full = True
        with pytest.raises(LogError, match="No space left"):
            admin.commit("g", {SOURCE: OffsetAndMetadata(2, "")})
        assert verify(tmp_path) == []
        disk.is_full = False
        assert admin.committed("g", [SOURCE]) == {SOURCE: OffsetAndMetadata(1, "")}
        admin.commit("g", {SOURCE: OffsetAndMetadata(3, "")})
    with open_log(tmp_path) as log:
        assert log.admin().committed("g", [SOURCE]) == {SOURCE: OffsetAndMetadata(3, "")}


def test_the_journal_is_begun_anew_before_it_grows_large(tmp_path: Path) -> None:
    with open_log(tmp_path) as log, open_log(tmp_path) as other:
        log.admin().create_topic("words")
        for i in range(1_500):
            (log if i % 2 else other).admin().commit("g", {SOURCE: OffsetAndMetadata(i, "x" * 500)})
        assert (tmp_path / "catalogue.journal").stat().st_size < 300_000
    assert verify(tmp_path) == []


OPENS = "import sys; from kstreams.log import open_log; open_log(sys.argv[1]).close()"
TOPICS = "import sys; from kstreams.log import open_log; print(sorted(open_log(sys.argv[1]).admin().topics()))"


def test_a_log_that_is_opened_twice_in_a_process_keeps_its_locks(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.admin().create_topic("a")
        open_log(tmp_path).close()
        run(OPENS, tmp_path)  # must not take itself for the last and remove the write-ahead log
        log.admin().create_topic("b")
        assert run(TOPICS, tmp_path).strip() == "['a', 'b']"


def test_damage_while_others_have_it_open_is_refused(killed: Path, tmp_path: Path) -> None:
    folder = copy(killed, tmp_path / "log")
    holder = start(f"{OPENS.replace('.close()', '')}; print(1, flush=True); sys.stdin.read()", folder)
    assert holder.stdout is not None
    holder.stdout.readline()
    (folder / "catalogue.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(LogError, match="stop all processes"):
        open_log(folder)
    holder.kill()
    holder.communicate()
    assert state(folder) == state(copy(killed, tmp_path / "whole"))


FORMAT_1 = """
CREATE TABLE topics (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
    partitions INTEGER NOT NULL, config TEXT NOT NULL);
CREATE TABLE offsets (group_id TEXT NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL,
    next_offset INTEGER NOT NULL, metadata TEXT NOT NULL, PRIMARY KEY (group_id, topic, partition)) WITHOUT ROWID;
CREATE TABLE producers (id INTEGER PRIMARY KEY AUTOINCREMENT, transactional_id TEXT NOT NULL UNIQUE,
    epoch INTEGER NOT NULL);
CREATE TABLE transactions (id INTEGER PRIMARY KEY, producer_id INTEGER NOT NULL, epoch INTEGER NOT NULL,
    state TEXT NOT NULL, expires_ms INTEGER NOT NULL);
CREATE INDEX open_transactions ON transactions (state, producer_id) WHERE state = 'open';
CREATE TABLE transaction_partitions (transaction_id INTEGER NOT NULL, topic_id INTEGER NOT NULL,
    partition INTEGER NOT NULL, first_offset INTEGER NOT NULL,
    PRIMARY KEY (transaction_id, topic_id, partition)) WITHOUT ROWID;
CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
PRAGMA user_version = 1;
"""


def in_format_1(killed: Path, folder: Path, *changes: str) -> Path:
    """The log as a kstreams without a journal wrote it."""
    copy(killed, folder)
    state(folder)
    database = sqlite3.connect(folder / "catalogue.sqlite")
    tables = ("topics", "offsets", "producers", "transactions", "transaction_partitions", "marks")
    rows = {table: database.execute(f"SELECT * FROM {table}").fetchall() for table in tables}
    database.close()
    for path in folder.glob("catalogue.*"):
        path.unlink()
    old = sqlite3.connect(folder / "catalogue.sqlite")
    old.execute("PRAGMA journal_mode = WAL")
    old.executescript(FORMAT_1)
    with old:
        for table, held in rows.items():
            for row in held:
                if "last of" not in str(row):
                    old.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        old.execute("UPDATE sqlite_sequence SET seq = 2 WHERE name = 'topics'")
        for change in changes:
            old.execute(change)
    old.close()
    return folder


def test_a_log_of_format_1_is_upgraded_when_it_is_opened(killed: Path, tmp_path: Path) -> None:
    whole = state(copy(killed, tmp_path / "whole"))
    folder = in_format_1(killed, tmp_path / "log")
    assert verify(folder) == []
    assert state(folder) == whole
    assert verify(folder) == []
    with open_log(folder) as log:
        log.admin().create_topic("next")
    assert (folder / "topics" / "next@3").is_dir()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE topics SET partitions = 1000000000",
        "UPDATE topics SET partitions = -1",
        "UPDATE topics SET config = '{'",
        "UPDATE topics SET config = '[1]'",
        f"UPDATE topics SET config = '{'[' * 100_000}'",
        "UPDATE topics SET name = '../../outside'",
        "UPDATE offsets SET next_offset = -5",
        "UPDATE offsets SET next_offset = 'x'",
        "UPDATE producers SET epoch = -1",
    ],
)
def test_what_cannot_be_is_one_clear_error_at_once(killed: Path, tmp_path: Path, change: str) -> None:
    folder = in_format_1(killed, tmp_path / "log", change)
    assert verify(folder) != []
    with pytest.raises(CorruptLogError, match="holds"):
        open_log(folder)


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
