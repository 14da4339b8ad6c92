"""Versions of a task's state are read back exactly, or refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kstreams.errors import StateError
from kstreams.runtime.spark.tasks.state_files import EMPTY, StateFiles, StateVersion
from kstreams.state.api import Changes


def changes(**entries: str | None) -> Changes:
    values = [None if value is None else value.encode() for value in entries.values()]
    keys = [key.encode() for key in entries]
    return Changes(pa.array(keys, pa.binary()), pa.array(values, pa.binary()), pa.array([0] * len(keys), pa.int64()))


def contents(files: list) -> list[dict]:
    return [{name: store.keys.to_pylist() for name, store in file.stores.items()} for file in files]


@pytest.fixture
def files(tmp_path: Path) -> StateFiles:
    return StateFiles(str(tmp_path), "0_1")


def written(files: StateFiles, count: int) -> list[StateVersion]:
    versions = [EMPTY]
    for step in range(count):
        key = {f"k{step}": "v"}
        versions.append(files.write_changes(step, versions[-1], {"stream_time": step}, {"store": changes(**key)}))
    return versions[1:]


def test_a_version_is_the_changes_of_all_steps_before_it(files: StateFiles) -> None:
    versions = written(files, 3)
    assert contents(files.rebuild(versions[1])) == [{"store": [b"k0"]}, {"store": [b"k1"]}]
    assert files.metadata_at(versions[1]) == {"stream_time": 1}


def test_an_executor_catches_up_from_the_version_it_has(files: StateFiles) -> None:
    versions = written(files, 4)
    assert contents(files.since(versions[1], versions[3]) or []) == [{"store": [b"k2"]}, {"store": [b"k3"]}]
    assert files.since(versions[2], versions[2]) == []


def test_a_version_that_is_ahead_or_of_another_history_cannot_catch_up(files: StateFiles) -> None:
    versions = written(files, 3)
    assert files.since(versions[2], versions[1]) is None
    assert files.since(StateVersion(0, b"x" * 16), versions[1]) is None


def test_a_step_run_again_writes_the_same_version(files: StateFiles) -> None:
    first = written(files, 2)
    again = files.write_changes(1, first[0], {"stream_time": 1}, {"store": changes(k1="v")})
    assert again == first[1] == files.version_at(1)


def test_a_snapshot_stands_for_all_before_it_and_lets_old_files_go(files: StateFiles, tmp_path: Path) -> None:
    versions = written(files, 6)
    for step in (2, 4):
        files.write_snapshot(versions[step], {"stream_time": step}, {"store": changes(all="v")})
    assert contents(files.rebuild(versions[5])) == [{"store": [b"all"]}, {"store": [b"k5"]}]
    assert not list(tmp_path.rglob("*0000.changes"))
    assert contents(files.rebuild(versions[3])) == [{"store": [b"all"]}, {"store": [b"k3"]}]


def test_files_of_two_histories_are_refused(files: StateFiles) -> None:
    versions = written(files, 2)
    files.write_changes(0, EMPTY, {}, {"store": changes(other="v")})
    with pytest.raises(StateError, match="do not form one history at step 0"):
        files.rebuild(versions[1])


def test_a_missing_step_is_an_error_not_an_empty_state(files: StateFiles, tmp_path: Path) -> None:
    versions = written(files, 2)
    next(tmp_path.rglob("*0000.changes")).unlink()
    with pytest.raises(StateError, match=r"0000\.changes is missing"):
        files.rebuild(versions[1])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_changed_byte_is_detected(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("flip")
    files = StateFiles(str(folder), "0_0")
    version = files.write_changes(7, EMPTY, {"stream_time": 3}, {"store": changes(a="1", b=None)})
    path = next(folder.rglob("*.changes"))
    raw = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(raw)
    with pytest.raises(StateError):
        files.rebuild(version)


def test_deletions_and_several_stores_survive(files: StateFiles) -> None:
    version = files.write_changes(0, EMPTY, {}, {"a": changes(x=None), "b": changes()})
    (file,) = files.rebuild(version)
    assert file.stores["a"].values.to_pylist() == [None]
    assert len(file.stores["b"]) == 0
