"""Versions of a task's state are read back exactly, or refused with the name of the file and what was expected."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kstreams.errors import StateError
from kstreams.runtime.spark.steps import EMPTY, StateVersion, version_number
from kstreams.runtime.spark.storage.opening import open_storage
from kstreams.runtime.spark.tasks.state_files import StateFiles, StateOwner
from kstreams.state.api import Changes

FORMATS = {"store": "key-value StringSerde() IntSerde()"}


def changes(**entries: str | None) -> Changes:
    values = [None if value is None else value.encode() for value in entries.values()]
    keys = [key.encode() for key in entries]
    return Changes(pa.array(keys, pa.binary()), pa.array(values, pa.binary()), pa.array([0] * len(keys), pa.int64()))


def contents(files: list) -> list[dict]:
    return [{name: store.keys.to_pylist() for name, store in file.stores.items()} for file in files]


def owned(folder: Path, **other: object) -> StateFiles:
    """The files of a task under a folder; of another application, checkpoint, task or format on request."""
    owner = StateOwner("app", "a1", "0_1", FORMATS)._replace(**other)
    return StateFiles(open_storage(str(folder), {}), owner)


@pytest.fixture
def files(tmp_path: Path) -> StateFiles:
    return owned(tmp_path)


def written(files: StateFiles, count: int, name: str = "k") -> list[StateVersion]:
    versions = [EMPTY]
    for step in range(count):
        key = {f"{name}{step}": "v"}
        at = version_number(step)
        versions.append(files.write_changes(at, versions[-1], {"stream_time": step}, {"store": changes(**key)}))
    return versions[1:]


def file_of(folder: Path, step: int, kind: str = "changes") -> Path:
    (found,) = folder.rglob(f"{step:012d}-*.{kind}")
    return found


def test_a_version_is_the_changes_of_all_steps_before_it(files: StateFiles) -> None:
    versions = written(files, 3)
    found = files.rebuild(versions[1])
    assert contents(found) == [{"store": [b"k0"]}, {"store": [b"k1"]}]
    assert found[-1].metadata == {"stream_time": 1}


def test_an_executor_catches_up_from_the_version_it_has(files: StateFiles) -> None:
    versions = written(files, 4)
    assert contents(files.since(versions[1], versions[3]) or []) == [{"store": [b"k2"]}, {"store": [b"k3"]}]
    assert files.since(versions[2], versions[2]) == []


def test_a_version_that_is_ahead_or_of_another_history_cannot_catch_up(files: StateFiles) -> None:
    versions = written(files, 3)
    assert files.since(versions[2], versions[1]) is None
    assert files.since(StateVersion(0, b"x" * 16), versions[1]) is None


def test_a_step_run_again_writes_the_same_version(files: StateFiles, tmp_path: Path) -> None:
    first = written(files, 2)
    assert written(files, 2) == first
    assert len(list(tmp_path.rglob("*.changes"))) == 2


def test_attempts_at_a_step_that_differ_do_not_touch_each_other(files: StateFiles) -> None:
    (parent,) = written(files, 1)
    made = [
        files.write_changes(version_number(1), parent, {}, {"store": changes(k=value)}) for value in ("one", "other")
    ]
    later = [files.write_changes(version_number(2), version, {}, {"store": changes(x="v")}) for version in made]
    values = [[file.stores["store"].values.to_pylist() for file in files.rebuild(version)] for version in later]
    assert values == [[[b"v"], [b"one"], [b"v"]], [[b"v"], [b"other"], [b"v"]]]


def test_a_snapshot_stands_for_all_before_it(files: StateFiles) -> None:
    versions = written(files, 6)
    for step in (2, 4):
        files.write_snapshot(versions[step], {"stream_time": step}, {"store": changes(all="v")})
    assert contents(files.rebuild(versions[5])) == [{"store": [b"all"]}, {"store": [b"k5"]}]
    assert contents(files.rebuild(versions[3])) == [{"store": [b"all"]}, {"store": [b"k3"]}]


def test_a_snapshot_is_due_when_changes_outweigh_the_last_one_or_are_many(files: StateFiles) -> None:
    assert files.is_snapshot_due(4)
    versions = written(files, 1)
    files.write_snapshot(versions[0], {}, {"store": changes(**{f"k{n}": "some value" for n in range(2_000)})})
    assert not files.is_snapshot_due(4)
    version = versions[0]
    for step in range(1, 5):
        version = files.write_changes(version_number(step), version, {}, {"store": changes(k="v")})
    assert not files.is_snapshot_due(4)
    assert files.is_snapshot_due(3)
    files.write_changes(
        version_number(5), version, {}, {"store": changes(**{f"k{n}": "new value" for n in range(2_000)})}
    )
    assert files.is_snapshot_due(100)


def test_pruning_leaves_a_snapshot_and_what_came_after_it(files: StateFiles, tmp_path: Path) -> None:
    versions = written(files, 6)
    files.write_snapshot(versions[2], {}, {"store": changes(all="v")})
    files.prune(versions[2].number)
    assert contents(files.rebuild(versions[5])) == [{"store": [b"all"]}, *({"store": [b"k%d" % n]} for n in (3, 4, 5))]
    assert len(list(tmp_path.rglob("*-*"))) == 5


def test_a_missing_step_is_an_error_not_an_empty_state(files: StateFiles, tmp_path: Path) -> None:
    versions = written(files, 2)
    path = file_of(tmp_path, 0)
    path.unlink()
    with pytest.raises(StateError, match=f"{path} is missing"):
        files.rebuild(versions[1])
    assert files.since(EMPTY, versions[1]) is None


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_changed_byte_is_detected(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("flip")
    files = owned(folder)
    version = files.write_changes(version_number(7), EMPTY, {"stream_time": 3}, {"store": changes(a="1", b=None)})
    path = file_of(folder, 7)
    raw = bytearray(path.read_bytes())
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(raw)
    with pytest.raises(StateError, match=f"{path} is damaged"):
        files.rebuild(version)


@pytest.mark.parametrize("harm", ["flipped", "shortened", "emptied", "of another version"])
def test_a_damaged_snapshot_is_made_up_for_by_older_files(
    files: StateFiles, tmp_path: Path, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    versions = written(files, 6)
    for step in (2, 4):
        files.write_snapshot(versions[step], {}, {"store": changes(**{f"all{step}": "v"})})
    path, older = file_of(tmp_path, 4, "snapshot"), file_of(tmp_path, 2, "snapshot")
    raw = path.read_bytes()
    damaged = {
        "flipped": raw[:40] + bytes([raw[40] ^ 1]) + raw[41:],
        "shortened": raw[:-5],
        "emptied": b"",
        "of another version": older.read_bytes(),
    }
    path.write_bytes(damaged[harm])
    with caplog.at_level(logging.WARNING):
        found = files.rebuild(versions[5])
    assert contents(found) == [{"store": [b"all2"]}, {"store": [b"k3"]}, {"store": [b"k4"]}, {"store": [b"k5"]}]
    assert str(path) in caplog.text


def test_a_damaged_snapshot_without_older_files_is_refused(files: StateFiles, tmp_path: Path) -> None:
    versions = written(files, 3)
    files.write_snapshot(versions[2], {}, {"store": changes(all="v")})
    files.prune(versions[2].number)
    path = file_of(tmp_path, 2, "snapshot")
    path.write_bytes(path.read_bytes()[:-1])
    file_of(tmp_path, 2).unlink()
    with pytest.raises(StateError, match=f"{path} is damaged"):
        files.rebuild(versions[2])


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"application": "app2"}, "state of the application app2, not of app"),
        ({"checkpoint": "b2"}, "state of the checkpoint b2, not of a1"),
        ({"task": "0_2"}, "state of the task 0_2, not of 0_1"),
        (
            {"formats": {"store": "session StringSerde() IntSerde()"}},
            r"the store 'store' as session StringSerde\(\) IntSerde\(\), not as key-value",
        ),
    ],
)
def test_a_file_of_something_else_is_refused(
    files: StateFiles, tmp_path: Path, other: dict[str, object], said: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (foreign,) = written(owned(elsewhere, **other), 1)
    (source,) = elsewhere.rglob("*.changes")
    target = tmp_path / "state" / "0_1" / source.name
    target.parent.mkdir(parents=True)
    target.write_bytes(source.read_bytes())
    with pytest.raises(StateError, match=said) as caught:
        files.rebuild(foreign)
    assert str(target) in str(caught.value)


def test_a_file_under_the_name_of_another_step_is_refused(files: StateFiles, tmp_path: Path) -> None:
    versions = written(files, 3)
    file_of(tmp_path, 1).write_bytes(file_of(tmp_path, 0).read_bytes())
    with pytest.raises(StateError, match="holds changes of step 0, round 0, not changes of step 1, round 0"):
        files.rebuild(versions[2])


def test_a_store_that_the_topology_has_lost_is_no_error(tmp_path: Path) -> None:
    (version,) = written(owned(tmp_path), 1)
    assert len(owned(tmp_path, formats={}).rebuild(version)) == 1


def test_deletions_and_several_stores_survive(files: StateFiles) -> None:
    version = files.write_changes(0, EMPTY, {}, {"a": changes(x=None), "b": changes()})
    (file,) = files.rebuild(version)
    assert file.stores["a"].values.to_pylist() == [None]
    assert len(file.stores["b"]) == 0
