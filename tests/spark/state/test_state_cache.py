"""What a Spark worker keeps open between steps: as many states as their memory allows, however many tasks there are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from kstreams.runtime.spark.steps import EMPTY, StateVersion
from kstreams.runtime.spark.storage.opening import open_storage
from kstreams.runtime.spark.tasks.state_cache import CachedState, TaskStateCache
from kstreams.runtime.spark.tasks.state_files import StateFile, StateFiles, StateOwner
from kstreams.state import StateLimits, StoreBuilder, Stores
from kstreams.state.api import Changes

ON_DISK = Stores.key_value("totals", key=str, value=bytes)
IN_MEMORY = Stores.key_value("totals", key=str, value=bytes, store="memory")
ROOMY = StateLimits()
VALUE = b"x" * 1_000_000


class CountingFiles(StateFiles):
    """The files of one task; counts how often a state was rebuilt from them."""

    rebuilt = 0
    version = EMPTY

    def rebuild(self, wanted: StateVersion) -> list[StateFile]:
        self.rebuilt += 1
        return super().rebuild(wanted)


@pytest.fixture
def cache() -> Iterator[TaskStateCache]:
    cache = TaskStateCache()
    yield cache
    cache.clear()


def tasks(folder: Path, count: int) -> dict[str, CountingFiles]:
    """The files of tasks that wrote one value each in their first step."""
    storage = open_storage(str(folder), {})
    files = {f"0_{number}": CountingFiles(storage, StateOwner("app", "id", f"0_{number}")) for number in range(count)}
    row = Changes(pa.array([b"k"]), pa.array([VALUE]), pa.array([0]))
    for of_task in files.values():
        of_task.version = of_task.write_changes(0, EMPTY, {}, {"totals": row})
    return files


def step(
    cache: TaskStateCache, files: dict[str, CountingFiles], builder: StoreBuilder, limits: StateLimits = ROOMY
) -> list[CachedState]:
    """One step: each task reads its state once."""
    used = []
    for name, of_task in files.items():
        used.append(cache.at(name, of_task, [builder], of_task.version, caching=True, limits=limits))
        assert used[-1].state.stores["totals"].get("k") == VALUE
        cache.trim(limits)
    return used


def rebuilt(files: dict[str, CountingFiles]) -> list[int]:
    return [of_task.rebuilt for of_task in files.values()]


def test_no_state_is_rebuilt_while_all_fit_in_memory(tmp_path: Path, cache: TaskStateCache) -> None:
    files = tasks(tmp_path, 40)
    step(cache, files, ON_DISK)
    step(cache, files, ON_DISK)
    assert rebuilt(files) == [1] * 40


def test_states_that_are_kept_in_rocksdb_give_their_memory_back_and_stay(tmp_path: Path, cache: TaskStateCache) -> None:
    files, limits = tasks(tmp_path, 6), StateLimits(live_max_bytes=4_000_000)
    step(cache, files, ON_DISK, limits)
    step(cache, files, ON_DISK, limits)
    assert rebuilt(files) == [1] * 6


def test_of_states_in_memory_those_used_longest_ago_go_when_they_take_too_much(
    tmp_path: Path, cache: TaskStateCache
) -> None:
    files, limits = tasks(tmp_path, 5), StateLimits(live_max_bytes=3_500_000)
    step(cache, files, IN_MEMORY, limits)
    newest = dict(list(files.items())[2:])
    step(cache, newest, IN_MEMORY, limits)
    assert rebuilt(newest) == [1] * 3
    step(cache, files, IN_MEMORY, limits)
    assert rebuilt(files)[:2] == [2, 2]


def test_the_state_used_last_stays_though_it_alone_takes_too_much(tmp_path: Path, cache: TaskStateCache) -> None:
    files, limits = tasks(tmp_path, 1), StateLimits(live_max_bytes=1)
    step(cache, files, IN_MEMORY, limits)
    step(cache, files, IN_MEMORY, limits)
    assert rebuilt(files) == [1]


def test_a_state_in_use_stays_while_others_are_opened(tmp_path: Path, cache: TaskStateCache) -> None:
    files, limits = tasks(tmp_path, 3), StateLimits(live_max_bytes=1)
    used = [
        cache.at(name, of_task, [IN_MEMORY], of_task.version, caching=True, limits=limits)
        for name, of_task in files.items()
    ]
    assert [state.state.stores["totals"].get("k") for state in used] == [VALUE] * 3
