"""A manifest says what the state of a step is; a plan, what was decided before it ran."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kstreams.errors import StateError
from kstreams.runtime.spark.steps import AppliedStep, StateVersion
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage
from kstreams.runtime.spark.storage.opening import open_storage
from kstreams.runtime.spark.tasks.manifests import Manifests, StepManifest, newest
from kstreams.runtime.spark.tasks.step_plans import GlobalTable, StepPlan, StepPlans


@pytest.fixture
def storage(tmp_path: Path) -> CheckpointStorage:
    return open_storage(str(tmp_path), {})


def kept(number: int, digest: bytes = b"x") -> StateVersion:
    return StateVersion(number, digest * 16)


def published(manifests: Manifests, count: int, digest: bytes = b"x") -> list[AppliedStep]:
    steps = [AppliedStep()]
    for number in range(count):
        steps.append(manifests.publish(StepManifest(number, steps[-1], {"0_0": kept(number, digest)})))
    return steps[1:]


def test_a_driver_that_starts_reads_what_the_last_one_published(storage: CheckpointStorage) -> None:
    *_, last = published(Manifests(storage), 3)
    assert Manifests(storage).get(last).states == {"0_0": kept(2)}
    assert Manifests(storage).get(AppliedStep()) == StepManifest()


def test_how_far_global_tables_were_read_is_kept(storage: CheckpointStorage) -> None:
    tables = {2: GlobalTable(0, {"rates": {"0": 7}})}
    last = Manifests(storage).publish(StepManifest(0, AppliedStep(), {"2_0": kept(0)}, tables))
    assert Manifests(storage).get(last).globals == tables


def test_two_drivers_that_made_different_states_leave_two_manifests(storage: CheckpointStorage) -> None:
    (one,), (other,) = published(Manifests(storage), 1, b"1"), published(Manifests(storage), 1, b"2")
    assert one != other
    assert Manifests(storage).get(one).states == {"0_0": kept(0, b"1")}
    assert Manifests(storage).get(other).states == {"0_0": kept(0, b"2")}


def test_a_step_that_runs_again_finds_its_manifest(storage: CheckpointStorage) -> None:
    assert published(Manifests(storage), 2) == published(Manifests(storage), 2)


@pytest.mark.parametrize(("harm", "said"), [("gone", "is missing"), ("flipped", "is damaged"), ("swapped", "damaged")])
def test_a_manifest_that_cannot_be_read_is_refused(
    storage: CheckpointStorage, tmp_path: Path, harm: str, said: str
) -> None:
    first, last = published(Manifests(storage), 2)
    path = tmp_path / "manifests" / f"{last.number:012d}-{last.manifest}.json"
    raw = path.read_bytes()
    path.unlink()
    if harm != "gone":
        other = tmp_path / "manifests" / f"{first.number:012d}-{first.manifest}.json"
        path.write_bytes(other.read_bytes() if harm == "swapped" else raw[:9] + bytes([raw[9] ^ 1]) + raw[10:])
    with pytest.raises(StateError, match=said) as caught:
        Manifests(storage).get(last)
    assert str(path) in str(caught.value)


def test_state_of_an_earlier_version_is_refused_with_a_cure(storage: CheckpointStorage) -> None:
    with pytest.raises(StateError, match=r"written by an earlier version of kstreams.*--reset"):
        Manifests(storage).get(AppliedStep(4))


def test_old_manifests_go_those_of_the_last_two_steps_stay(storage: CheckpointStorage, tmp_path: Path) -> None:
    steps = published(Manifests(storage), 9)
    names = sorted(path.name for path in (tmp_path / "manifests").iterdir())
    assert names == [f"{step.number:012d}-{step.manifest}.json" for step in steps[-3:]]
    later = Manifests(storage)
    later.publish(StepManifest(9, steps[-1]))
    assert len(list((tmp_path / "manifests").iterdir())) == 3


def test_manifests_go_back_as_many_steps_as_are_asked_for(storage: CheckpointStorage) -> None:
    manifests = Manifests(storage, batches=3)
    steps = published(manifests, 20)  # two of each batch
    assert [found.step for found in manifests.history(steps[-1])] == [19, 18, 17, 16, 15, 14, 13]
    assert [found.step for found in manifests.history(steps[-4])] == [16, 15, 14, 13]
    assert not list(manifests.history(AppliedStep()))


def test_of_two_drivers_that_plan_a_step_both_take_one_plan(storage: CheckpointStorage) -> None:
    found: list[StepPlan] = []
    plans = [threading.Thread(target=lambda now=now: found.append(_plan(storage, now))) for now in range(8)]
    for thread in plans:
        thread.start()
    for thread in plans:
        thread.join()
    assert len(found) == 8
    assert len({plan.now_ms for plan in found}) == 1


def _plan(storage: CheckpointStorage, now_ms: int) -> StepPlan:
    return StepPlans(storage).publish(4, StepPlan(2, now_ms))


def test_a_plan_that_goes_on_from_another_step_is_refused(storage: CheckpointStorage) -> None:
    StepPlans(storage).publish(4, StepPlan(2, 1000))
    with pytest.raises(StateError, match="after step 2, but the log has committed step 3 last"):
        StepPlans(storage).publish(4, StepPlan(3, 2000))


def test_of_a_task_the_newest_round_counts() -> None:
    assert newest([{"0_0": kept(5), "0_1": kept(5)}, {"0_0": kept(6)}, {"0_0": kept(4)}]) == {
        "0_0": kept(6),
        "0_1": kept(5),
    }


def test_another_number_of_tasks_is_refused() -> None:
    manifest = StepManifest(0, AppliedStep(), {"0_0": kept(0), "1_0": kept(0), "1_1": kept(0)})
    manifest.require_tasks({0: 1, 1: 2, 2: 5})
    with pytest.raises(StateError, match="Sub-topology 1 has state for 2 tasks, but there are 3 now"):
        manifest.require_tasks({0: 1, 1: 3})
