"""What a store promises about its files: committed prefixes after any crash, one owner, clear errors."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kstreams.errors import CorruptStateError, StateError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.record import ValueAndTimestamp
from kstreams.runtime.native.uncaught_exceptions import clear_frames
from kstreams.state import StateLimits, Stores, TaskState, open_task_state
from kstreams.state.rocksdb import unreadable

PLAIN = Stores.key_value("plain", key=str, value=int)
TABLE = Stores.timestamped_key_value("table", key=str, value=int)


def commit(state: TaskState, offset: int) -> None:
    changes = state.changes()
    state.persist(changes, dict.fromkeys(changes, offset))


def batch(rows: list[tuple[bytes, bytes | None, int]], base_offset: int = 0) -> Batch:
    keys, values, times = ([row[part] for row in rows] for part in range(3))
    offsets = np.arange(base_offset, base_offset + len(rows))
    columns = pa.array(keys, pa.binary()), pa.array(values, pa.binary()), pa.array(times, pa.int64())
    return Batch(TopicPartition("changelog", 0), offsets, *columns)


def test_what_is_committed_is_there_after_a_clean_close(tmp_path: Path) -> None:
    state = open_task_state([PLAIN], tmp_path)
    state.stores["plain"].put("a", 1)
    commit(state, 5)
    state.stores["plain"].put("a", 2)
    state.close()
    reopened = open_task_state([PLAIN], tmp_path)
    assert reopened.stores["plain"].get("a") == 1
    assert reopened.changelog_offset("plain") == 5
    reopened.close()


def test_a_commit_larger_than_a_batch_is_whole(tmp_path: Path) -> None:
    state = open_task_state([PLAIN], tmp_path)
    keys = [f"{n}" for n in range(25_000)]
    state.stores["plain"].put_many(keys, list(range(25_000)))
    commit(state, 25_000)
    state.close()
    reopened = open_task_state([PLAIN], tmp_path)
    assert reopened.stores["plain"].get_many(keys) == list(range(25_000))
    assert list(reopened.stores["plain"].all()) == sorted(zip(keys, range(25_000), strict=True))
    reopened.close()


def test_files_belong_to_their_owner_alone(tmp_path: Path) -> None:
    state = open_task_state([PLAIN], tmp_path / "task")
    state.stores["plain"].put("a", 1)
    commit(state, 1)
    state.close()
    modes = {path: path.stat().st_mode & 0o777 for path in [tmp_path / "task", *(tmp_path / "task").rglob("*")]}
    assert {oct(mode) for path, mode in modes.items() if path.is_dir()} == {oct(0o700)}
    assert {oct(mode) for path, mode in modes.items() if path.is_file()} == {oct(0o600)}


def test_a_directory_has_one_owner(tmp_path: Path) -> None:
    state = open_task_state([PLAIN], tmp_path)
    with pytest.raises(StateError, match=f"in use by process {os.getpid()}.*state.dir"):
        open_task_state([PLAIN], tmp_path)
    script = f"from tests.state.test_rocksdb import *; open_task_state([PLAIN], Path({str(tmp_path)!r}))"
    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert f"in use by process {os.getpid()}" in other.stderr
    state.close()
    open_task_state([PLAIN], tmp_path).close()


def test_a_scan_that_was_left_open_does_not_keep_the_files(tmp_path: Path) -> None:
    state = open_task_state([PLAIN], tmp_path, limits=StateLimits(live_max_bytes=1))
    state.stores["plain"].put_many([f"{n:05}" for n in range(1_000)], list(range(1_000)))
    commit(state, 1)
    scan = state.stores["plain"].all()
    assert next(scan) == ("00000", 0)
    state.close()
    reopened = open_task_state([PLAIN], tmp_path)
    assert reopened.stores["plain"].get("00999") == 999
    reopened.close()


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    state = open_task_state([PLAIN], tmp_path)
    state.close()
    state.close()
    with pytest.raises(StateError, match="are closed: their task has moved or stopped"):
        state.stores["plain"].get("a")


def test_a_store_may_be_named_default_and_come_and_go(tmp_path: Path) -> None:
    default = Stores.key_value("default", key=str, value=int)
    for builders in ([default], [default, TABLE], [TABLE], [default]):
        state = open_task_state(builders, tmp_path)
        if builders == [default]:
            state.stores["default"].put_if_absent("a", 1)
        commit(state, 1)
        state.close()
    state = open_task_state([default], tmp_path)
    assert state.stores["default"].get("a") == 1
    state.close()


def test_importing_state_does_not_load_rocksdict() -> None:
    script = "import sys, kstreams.state; assert 'rocksdict' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("filled", [False, True], ids=["into an empty store", "over an older store"])
def test_a_bulk_restore_takes_the_last_record_of_each_key(tmp_path: Path, filled: bool) -> None:
    state = open_task_state([TABLE], tmp_path)
    if filled:
        state.stores["table"].put_many([f"{n}" for n in range(50)], [ValueAndTimestamp(-1, 0)] * 50)
        commit(state, 1)
    rng, model = random.Random(7), dict[str, Any]()
    if filled:
        model = {f"{n}": ValueAndTimestamp(-1, 0) for n in range(50)}
    for base in range(0, 40_000, 10_000):
        rows: list[tuple[bytes, bytes | None, int]] = []
        for n in range(10_000):
            key, value = f"{rng.randrange(9_000)}", None if rng.random() < 0.2 else base + n
            rows.append((key.encode(), None if value is None else value.to_bytes(8, "big"), n))
            model.pop(key, None)
            if value is not None:
                model[key] = ValueAndTimestamp(value, n)
        state.restore("table", batch(rows, base))
    assert state.changelog_offset("table") == 40_000
    assert dict(state.stores["table"].all()) == model
    state.close()
    reopened = open_task_state([TABLE], tmp_path, limits=StateLimits(live_max_bytes=1))
    assert dict(reopened.stores["table"].all()) == model
    assert reopened.changelog_offset("table") == 40_000
    reopened.close()


def test_a_restore_onto_uncommitted_changes_is_refused(tmp_path: Path) -> None:
    for directory in (None, tmp_path):
        state = open_task_state([PLAIN], directory)
        state.stores["plain"].put("a", 1)
        with pytest.raises(StateError, match="'plain' holds uncommitted changes"):
            state.restore("plain", batch([(b"a", None, 0)]))
        state.close()


def test_a_store_that_is_read_takes_a_later_restore_too(tmp_path: Path) -> None:
    state = open_task_state([PLAIN], tmp_path)
    state.restore("plain", batch([(b"a", (1).to_bytes(8, "big"), 0)]))
    assert state.stores["plain"].get("a") == 1
    state.restore("plain", batch([(b"a", (2).to_bytes(8, "big"), 0), (b"b", (3).to_bytes(8, "big"), 0)], 1))
    assert list(state.stores["plain"].all()) == [("a", 2), ("b", 3)]
    state.close()


# --- crashes: a child commits until it is killed; what every commit holds follows from its number alone

SMALL_MEMTABLES = StateLimits(write_buffer_bytes=256 * 1024)


def rows_of(number: int) -> list[tuple[str, int]]:
    rng = random.Random(number)
    return [(f"{rng.randrange(3_000)}", number) for _ in range(2_000 if number % 7 else 12_000)]


def commit_for_ever(directory: str) -> None:
    """The child: two stores get the same rows in every commit; it tells each commit that is done."""
    state = open_task_state([PLAIN, TABLE], Path(directory), limits=SMALL_MEMTABLES)
    for number in range(1, 10_000):
        for key, value in rows_of(number):
            state.stores["plain"].put(key, value)
            state.stores["table"].put(key, ValueAndTimestamp(value, number))
        commit(state, number)
        print(number, flush=True)


def kill_after(directory: Path, commits: int) -> int:
    script = f"from tests.state.test_rocksdb import *; commit_for_ever({str(directory)!r})"
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for line in child.stdout:
        if int(line) >= commits:
            child.send_signal(signal.SIGKILL)
            break
    last = [line for line in child.stdout if line.endswith("\n")]
    child.wait()
    child.stdout.close()
    return int(last[-1]) if last else commits


def replay(state: TaskState, store: str, last: int) -> None:
    """What a runtime does after a crash: the changelog from the offset of the store on."""
    for number in range((state.changelog_offset(store) or 0) + 1, last + 1):
        rows = [(key.encode(), value.to_bytes(8, "big"), number) for key, value in rows_of(number)]
        state.restore(store, batch(rows))


def after_kill(directory: Path, commits: int) -> int | None:
    last = kill_after(directory, commits)
    model = {key: value for number in range(1, last + 1) for key, value in rows_of(number)}
    state = open_task_state([PLAIN, TABLE], directory)
    offset = state.changelog_offset("table")
    for store in ("plain", "table"):
        replay(state, store, last)
    assert dict(state.stores["plain"].all()) == model
    assert {key: value.value for key, value in state.stores["table"].all()} == model
    state.close()
    return offset


def test_a_killed_task_holds_a_committed_prefix(tmp_path: Path) -> None:
    assert after_kill(tmp_path, 40) is not None  # else nothing had reached the disk, and nothing was shown


@pytest.mark.slow
@pytest.mark.parametrize("commits", range(3, 60, 3))
def test_a_task_killed_at_any_time_holds_a_committed_prefix(tmp_path: Path, commits: int) -> None:
    after_kill(tmp_path, commits)


class DiesBetweenBatches:
    """A database whose process dies after the first batch of a commit."""

    def __init__(self, db: Any) -> None:
        self._db, self._writes = db, 0

    def write(self, *arguments: Any) -> None:
        self._writes += 1
        if self._writes > 1:
            raise InterruptedError("killed")
        self._db.write(*arguments)


def test_half_a_commit_carries_the_offset_of_the_one_before(tmp_path: Path) -> None:
    state = open_task_state([PLAIN], tmp_path)
    store = state.stores["plain"]
    store.put("0", -1)
    commit(state, 1)
    store.put_many([f"{n}" for n in range(25_000)], list(range(25_000)))
    changes, whole = state.changes(), store.family._db
    store.family._db = DiesBetweenBatches(whole)
    with pytest.raises(StateError, match="killed"):
        state.persist(changes, {"plain": 25_001})
    store.family._db = whole
    store.family.offset = 1
    state.close()
    reopened = open_task_state([PLAIN], tmp_path)
    assert reopened.changelog_offset("plain") == 1
    assert 10_000 <= reopened.stores["plain"].approximate_num_entries() < 25_000
    reopened.restore("plain", batch(list(zip(*(column.to_pylist() for column in changes["plain"]), strict=True)), 1))
    assert reopened.changelog_offset("plain") == 25_001
    assert dict(reopened.stores["plain"].all()) == {f"{n}": n for n in range(25_000)}
    reopened.close()


def test_a_bulk_restore_loses_nothing_that_was_written_before_it(tmp_path: Path) -> None:
    state = open_task_state([PLAIN], tmp_path / "task")
    state.stores["plain"].put("before", 1)
    commit(state, 1)
    state.restore("plain", batch([(f"{n}".encode(), (n).to_bytes(8, "big"), 0) for n in range(30_000)], 1))
    assert state.stores["plain"].get("7") == 7
    shutil.copytree(tmp_path / "task", tmp_path / "killed")  # what a SIGKILL would leave
    state.close()
    after = open_task_state([PLAIN], tmp_path / "killed")
    assert after.changelog_offset("plain") == 30_001
    assert after.stores["plain"].get("before") == 1
    assert sum(1 for _ in after.stores["plain"].all()) == 30_001
    after.close()


# --- damage


def filled(directory: Path) -> dict[str, int]:
    state = open_task_state([PLAIN], directory)
    model = {f"key-{n:06}": n * 7919 % 100_003 for n in range(20_000)}
    state.stores["plain"].put_many(list(model), list(model.values()))
    commit(state, 20_000)
    state.close()
    return model


def flipped(path: Path, places: Iterable[int]) -> None:
    data = bytearray(path.read_bytes())
    for place in places:
        data[place] ^= 0x10
    path.write_bytes(bytes(data))


def largest_table(directory: Path) -> Path:
    return max((directory / "rocksdb").glob("*.sst"), key=lambda path: path.stat().st_size)


READS: dict[str, Callable[[Any], Any]] = {
    "all": lambda store: list(store.all()),
    "reverse_all": lambda store: list(store.reverse_all()),
    "range": lambda store: list(store.range("key-002000", "key-016000")),
    "get": lambda store: [store.get(f"key-{n:06}") for n in range(20_000)],
    "get_many": lambda store: store.get_many([f"key-{n:06}" for n in range(20_000)]),
    "first_from": lambda store: [store.family.first_from(f"key-{n:06}".encode()) for n in range(0, 20_000, 50)],
    "chunks": lambda store: list(store.family.chunks(b"", None)),
    "dump": lambda store: store.dump(),
}


@pytest.mark.parametrize("how", READS)
@pytest.mark.parametrize("limits", [StateLimits(), StateLimits(live_max_bytes=1)], ids=["live", "read below"])
def test_no_way_of_reading_takes_a_flipped_bit_for_the_end(tmp_path: Path, how: str, limits: StateLimits) -> None:
    filled(tmp_path)
    table = largest_table(tmp_path)
    flipped(table, [table.stat().st_size * 2 // 5])
    state = open_task_state([PLAIN], tmp_path, limits=limits)
    with pytest.raises(CorruptStateError, match=f"{tmp_path}/rocksdb are damaged: Corruption"):
        READS[how](state.stores["plain"])
    state.close()


@pytest.mark.parametrize(
    ("name", "how"),
    [(n, h) for n in ("CURRENT", "MANIFEST-*", "*.sst") for h in ("flipped", "missing")] + [("*.sst", "cut")],
)
def test_damage_that_shows_at_open_is_an_error_that_names_the_folder(tmp_path: Path, name: str, how: str) -> None:
    filled(tmp_path)
    for path in (tmp_path / "rocksdb").glob(name):
        if how == "missing":
            path.unlink()
        elif how == "cut":
            path.write_bytes(path.read_bytes()[:-1])
        else:
            flipped(path, [path.stat().st_size - 3])
    for _ in range(2):  # and the directory is let go
        with pytest.raises(CorruptStateError) as found:
            open_task_state([PLAIN], tmp_path)
        assert found.value.folder == tmp_path / "rocksdb"


def test_a_damaged_database_can_be_closed_deleted_and_opened_anew(tmp_path: Path) -> None:
    filled(tmp_path)
    table = largest_table(tmp_path)
    flipped(table, [table.stat().st_size * 2 // 5])
    state = open_task_state([PLAIN], tmp_path)
    with pytest.raises(CorruptStateError) as found:
        list(state.stores["plain"].all())
    clear_frames(found.value)
    state.close()
    shutil.rmtree(tmp_path / "rocksdb")
    reopened = open_task_state([PLAIN], tmp_path)
    assert reopened.changelog_offset("plain") is None
    reopened.close()


def test_a_full_disk_is_not_damage(tmp_path: Path) -> None:
    reasons = ["No space left on device", "Too many open files", "Permission denied"]
    for reason in reasons:
        found = unreadable(tmp_path, Exception(f"IO error: {reason}: While open a file: x.sst: {reason}"))
        assert type(found) is StateError
        assert reason in str(found)
