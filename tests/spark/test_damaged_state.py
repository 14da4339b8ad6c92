"""A state file that is not what was written is refused by the next step, or made up for by older ones; never used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import kstreams as ks
from kstreams.errors import StateError
from kstreams.runtime.spark.tasks.snapshots import SNAPSHOTS
from kstreams.runtime.spark.tasks.state_cache import STATE_CACHE
from tests.spark.running import Row
from tests.spark.stepped import Stepped

pytestmark = pytest.mark.spark

TYPES = {"in": (str, str), "seen": (str, int), "totals": (str, int)}
ROWS = [Row("in", f"k{i % 5}", f"v{i % 3}", i) for i in range(40)]
STEPS = 9


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    STATE_CACHE.clear()
    yield
    STATE_CACHE.clear()


def counts(windows: ks.TimeWindows | None = None) -> ks.StreamsBuilder:
    """Two tasks with a store each, the second behind a repartition; in windows it is a store of another kind."""
    builder = ks.StreamsBuilder()
    words = builder.stream("in", key=str, value=str)
    words.group_by_key().count(materialized="seen").to_stream().to("seen", key=str, value=int)
    by_value = words.group_by(lambda key, value: value, key=str)
    if windows is None:
        by_value.count(materialized="totals").to_stream().to("totals", key=str, value=int)
    else:
        totals = by_value.windowed_by(windows).count(materialized="totals").to_stream()
        totals.select_key(lambda key, _: key.key, key=str).to("totals", key=str, value=int)
    return builder


def run(folder: Path, builder: ks.StreamsBuilder | None = None) -> Stepped:
    """An application after `STEPS` steps, with snapshots of some of them."""
    app = Stepped(builder or counts(), TYPES, ["in"], folder)
    for step in range(STEPS):
        app.step(ROWS[step * 4 : step * 4 + 4])
        SNAPSHOTS.wait()
    return app


def files_of(folder: Path, task: str, kind: str) -> list[Path]:
    """The state files of a task, oldest first."""
    return sorted((folder / "state" / task).glob(f"*{kind}"))


Harm = Callable[[Path, Path], bytes | None]
"""What stands in the place of a file of a folder afterwards; the second folder is of another application."""


def flipped(path: Path, _: Path) -> bytes:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 4
    return bytes(raw)


def shortened(path: Path, _: Path) -> bytes:
    return path.read_bytes()[:-3]


def missing(path: Path, _: Path) -> None:
    return None


def of_another_task(path: Path, _: Path) -> bytes:
    return files_of(path.parents[2], "0_0", path.suffix)[-1].read_bytes()


def of_another_store(path: Path, other: Path) -> bytes:
    return files_of(other, "1_0", path.suffix)[-1].read_bytes()


def of_an_earlier_step(path: Path, _: Path) -> bytes:
    return files_of(path.parents[2], "1_0", path.suffix)[-2].read_bytes()


def harmed(folder: Path, kind: str, harm: Harm) -> tuple[Path, bytes]:
    """Do harm to the newest file of the second task; its path, and what it was."""
    run(folder / "other", counts(ks.TimeWindows(size=1_000, grace=0)))
    path = files_of(folder / "app", "1_0", kind)[-1]
    whole, instead = path.read_bytes(), harm(path, folder / "other")
    path.unlink() if instead is None else path.write_bytes(instead)
    return path, whole


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (flipped, "is damaged: its content does not fit its digest"),
        (shortened, "is damaged: its content does not fit its digest"),
        (missing, "is missing: the checkpoint is incomplete"),
        (of_another_task, "is state of the task 0_0, expected was 1_0"),
        (of_another_store, "holds the store 'totals' as timestamped-window"),
        (of_an_earlier_step, "holds changes of step 14, round 0, not changes of step 16"),
    ],
)
def test_changes_that_are_not_what_was_written_are_refused(harm: Harm, said: str, tmp_path: Path) -> None:
    expected = run(tmp_path / "undisturbed").step(ROWS[36:], forget=True)
    app = run(tmp_path / "app")
    path, whole = harmed(tmp_path, ".changes", harm)
    with pytest.raises(StateError, match=said) as caught:
        app.step(ROWS[36:], forget=True)
    assert str(path) in str(caught.value)
    path.write_bytes(whole)
    assert app.step(ROWS[36:], forget=True) == expected


@pytest.mark.parametrize("harm", [flipped, shortened, missing, of_another_task, of_another_store, of_an_earlier_step])
def test_a_snapshot_that_is_not_what_was_written_is_made_up_for(harm: Harm, tmp_path: Path) -> None:
    expected = run(tmp_path / "undisturbed").step(ROWS[36:], forget=True)
    app = run(tmp_path / "app")
    harmed(tmp_path, ".snapshot", harm)
    assert app.step(ROWS[36:], forget=True) == expected
