"""Commits to the catalogue that a death or a full disk interrupts, and its journal when several processes commit."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kstreams.errors import LogError
from kstreams.log import open_log, verify
from kstreams.log.api import OffsetAndMetadata
from kstreams.log.embedded.disk import Disk
from kstreams.log.embedded.log import EmbeddedLog
from kstreams.log.embedded.schemas import LocalRegistry
from kstreams.schemas import RegisteredSchema, Schema
from tests.log.contract.reading import values_of
from tests.log.embedded.files import run
from tests.log.embedded.killed_log import SOURCE


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
from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log
from kstreams.log.api import OffsetAndMetadata
from tests.log.embedded.catalogue.test_catalogue_commits import Killing
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


REGISTERS = """
import sys
from kstreams.log import open_log
from kstreams.log.embedded.schemas import LocalRegistry
from kstreams.schemas import Schema
from tests.log.embedded.catalogue.test_catalogue_commits import Killing
registry = LocalRegistry(open_log(sys.argv[1], disk=Killing(float(sys.argv[2]), 1)))
registry.register("words-value", Schema('"int"'))
registry.register("words-value", Schema('"long"'))
sys.exit(1)
"""


@pytest.mark.parametrize(("share", "is_registered"), [(1.0, True), (0.9, False), (0.0, False)])
def test_a_process_that_dies_while_it_registers_a_schema_leaves_all_of_it_or_nothing(
    tmp_path: Path, share: float, is_registered: bool
) -> None:
    open_log(tmp_path).close()
    run(REGISTERS, tmp_path, share)
    with open_log(tmp_path) as log:
        assert isinstance(log, EmbeddedLog)
        registry = LocalRegistry(log)
        assert registry.versions("words-value") == ([1, 2] if is_registered else [1])
        long = registry.register("words-value", Schema('"long"'))
        assert (long.id, long.version) == (2, 2)
        assert registry.schema(2) == RegisteredSchema(2, long.guid, Schema('"long"'))
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
