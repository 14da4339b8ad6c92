"""The stores of tasks on the disk of an executor: what lies there is right or thrown away, whatever ended a worker."""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kstreams.errors import StateError
from kstreams.runtime.spark.steps import EMPTY, StateVersion, version_number
from kstreams.runtime.spark.storage.opening import open_storage
from kstreams.runtime.spark.tasks.local_state import OpenedState, opened_state
from kstreams.runtime.spark.tasks.state_files import StateFile, StateFiles, StateOwner
from kstreams.runtime.spark.tasks.task_folder import TaskFolder
from kstreams.runtime.spark.tasks.task_run import remove_unused
from kstreams.state import StateLimits, StoreBuilder, Stores
from kstreams.state.task_state import observed_times

COUNTS = Stores.key_value("counts", key=str, value=int)
IN_MEMORY = Stores.key_value("counts", key=str, value=int, store="memory")


class CountingFiles(StateFiles):
    """The files of one task; counts how often a state was made anew from them."""

    rebuilt = 0

    def rebuild(self, wanted: StateVersion) -> list[StateFile]:
        self.rebuilt += 1
        return super().rebuild(wanted)


@pytest.fixture
def files(tmp_path: Path) -> CountingFiles:
    return files_in(tmp_path)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "local" / "0_0"


@contextmanager
def opened(
    place: Path, files: StateFiles, version: StateVersion, builder: StoreBuilder = COUNTS
) -> Iterator[OpenedState]:
    with opened_state(place, files, [builder], version, caching=True, limits=StateLimits()) as state:
        yield state


def contents(place: Path, files: StateFiles, version: StateVersion, builder: StoreBuilder = COUNTS) -> dict[str, int]:
    with opened(place, files, version, builder) as state:
        return dict(state.stores.stores["counts"].all())


def step(place: Path, files: StateFiles, parent: StateVersion, at: int, builder: StoreBuilder = COUNTS) -> StateVersion:
    """One step: counts a key."""
    with opened(place, files, parent, builder) as state:
        store = state.stores.stores["counts"]
        key = f"k{at % 7}"
        store.put(key, (store.get(key) or 0) + 1)
        return files.write_changes(version_number(at), parent, {"step": at}, state.stores.changes())


def counted(steps: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for at in range(steps):
        found[f"k{at % 7}"] = found.get(f"k{at % 7}", 0) + 1
    return found


@pytest.mark.parametrize("builder", [COUNTS, IN_MEMORY])
def test_a_new_worker_opens_what_another_has_left(place: Path, files: CountingFiles, builder: StoreBuilder) -> None:
    version = EMPTY
    for at in range(20):
        version = step(place, files, version, at, builder)
    assert contents(place, files, version, builder) == counted(20)
    assert files.rebuilt == 1


def test_a_step_that_runs_again_finds_the_state_of_its_parent(place: Path, files: CountingFiles) -> None:
    first = step(place, files, EMPTY, 0)
    for _ in range(3):
        second = step(place, files, first, 1)
    assert contents(place, files, second) == counted(2)
    assert files.rebuilt == 1


def test_the_metadata_of_the_version_come_with_it(place: Path, files: StateFiles) -> None:
    version = step(place, files, step(place, files, EMPTY, 0), 1)
    for _ in range(2):
        with opened(place, files, version) as state:
            assert state.metadata == {"step": 1}


def test_another_history_is_not_taken_for_this_one(place: Path, files: StateFiles) -> None:
    one = step(place, files, EMPTY, 0)
    two = step(place, files, one, 1)
    assert contents(place, files, two) == counted(2)
    abandoned = files.write_changes(version_number(1), one, {"other": 1}, {})
    assert contents(place, files, abandoned) == counted(1)


def test_what_a_step_that_fails_leaves_is_thrown_away(place: Path, files: CountingFiles) -> None:
    version = step(place, files, EMPTY, 0)
    with pytest.raises(ZeroDivisionError), opened(place, files, version) as state:
        state.stores.stores["counts"].put("k9", 1 // 0)
    assert contents(place, files, version) == counted(1)


@pytest.mark.parametrize("place_of_byte", [0, 20, -1])
def test_a_note_that_is_damaged_counts_for_nothing(place: Path, files: CountingFiles, place_of_byte: int) -> None:
    version = step(place, files, step(place, files, EMPTY, 0), 1)
    raw = bytearray((place / "version").read_bytes())
    raw[place_of_byte] ^= 1
    (place / "version").write_bytes(raw)
    assert contents(place, files, version) == counted(2)
    assert files.rebuilt == 2


def test_other_stores_than_before_are_made_anew(place: Path, files: CountingFiles) -> None:
    version = step(place, files, EMPTY, 0)
    assert contents(place, files, version, IN_MEMORY) == counted(1)
    assert files.rebuilt == 2


def test_an_attempt_beside_one_that_still_runs_has_a_folder_of_its_own(place: Path, files: StateFiles) -> None:
    version = step(place, files, EMPTY, 0)
    with opened(place, files, version):
        assert contents(place, files, version) == counted(1)
    assert contents(place, files, version) == counted(1)
    assert [entry.name for entry in place.parent.iterdir()] == ["0_0"]


def test_the_highest_time_of_a_store_outlives_its_rows(place: Path, files: StateFiles) -> None:
    sessions = Stores.session("counts", 60_000, key=str, value=int, store="memory")
    with opened(place, files, EMPTY, sessions) as state:
        state.stores.observe({"counts": 5_000_000})
        version = files.write_changes(0, EMPTY, observed_times(state.stores), {})
    with opened(place, files, version, sessions) as state:
        assert state.stores.observed() == {"counts": 5_000_000}


def in_child(work: Callable[..., None], *args: Any) -> Any:
    """Run something in a process of its own, which does not share RocksDB's threads with this one."""
    child = multiprocessing.get_context("spawn").Process(target=work, args=args)
    child.start()
    return child


def files_in(folder: Path) -> CountingFiles:
    return CountingFiles(open_storage(str(folder / "checkpoint"), {}), StateOwner("app", "id", "0_0"))


def committed(folder: Path) -> list[StateVersion]:
    path = folder / "committed"
    lines = path.read_text().splitlines() if path.exists() else []
    return [EMPTY, *(StateVersion(int(number), bytes.fromhex(digest)) for number, digest in map(str.split, lines))]


def endless_steps(folder: Path, place: Path) -> None:
    """Steps until somebody kills the process; some are run twice, and some attempts change something else."""
    files = files_in(folder)
    version, at = committed(folder)[-1], len(committed(folder)) - 1
    while True:
        if at % 5 == 3:
            with opened(place, files, version) as state:
                state.stores.stores["counts"].put("never", at)
                files.write_changes(version_number(at), version, {}, state.stores.changes())
        version = step(place, files, version, at)
        with (folder / "committed").open("a") as log:
            log.write(f"{version.number} {version.digest.hex()}\n")
        at += 1


def test_a_worker_killed_at_any_moment_leaves_a_folder_that_is_right_or_none(tmp_path: Path, place: Path) -> None:
    pause, files = random.Random(7), files_in(tmp_path)
    for _ in range(6):
        before = len(committed(tmp_path))
        child = in_child(endless_steps, tmp_path, place)
        while len(committed(tmp_path)) < before + 3:
            time.sleep(0.01)
        time.sleep(0.05 * pause.random())
        child.kill()
        child.join()
        versions = committed(tmp_path)
        assert contents(place, files, versions[-1]) == counted(len(versions) - 1)


def killed_with_its_stores_written(folder: Path, place: Path, version: StateVersion) -> None:
    with opened(place, files_in(folder), version) as state:
        state.stores.close()
        os._exit(0)


def test_a_round_that_was_given_up_leaves_nothing_where_its_worker_was_killed(
    tmp_path: Path, place: Path, files: StateFiles
) -> None:
    version = step(place, files, EMPTY, 0)
    assert contents(place, files, version) == counted(1)
    given_up = step(place, files, version, 1)
    in_child(killed_with_its_stores_written, tmp_path, place, given_up).join()
    assert contents(place, files, version) == counted(1)


def open_with_little_room(folder: Path, place: Path, version: StateVersion) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
    try:
        contents(place, files_in(folder), version)
    except StateError as error:
        os.write(os.open(folder / "said", os.O_CREAT | os.O_WRONLY), str(error).encode()[:512])


def test_a_full_disk_is_said_as_such(place: Path, files: StateFiles, tmp_path: Path) -> None:
    in_child(open_with_little_room, tmp_path, place, step(place, files, EMPTY, 0)).join()
    said = (tmp_path / "said").read_text()
    assert str(place) in said
    assert "File too large" in said
    assert "Mend that" in said


def used(path: Path, seconds: int) -> None:
    TaskFolder(path).__exit__()
    os.utime(path / ".lock", (seconds, seconds))


def test_folders_that_nobody_uses_any_more_go(tmp_path: Path) -> None:
    old, held, new = (tmp_path / name / "0_0" for name in ("old", "held", "new"))
    used(old, 100)
    used(new, 300)
    with TaskFolder(held):
        os.utime(held / ".lock", (100, 100))
        remove_unused(tmp_path, 200)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["held", "new"]
