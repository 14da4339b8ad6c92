"""A state file that is not what was written is refused by the next step, or made up for by older ones; never used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import kstreams as ks
from kstreams.errors import StateError
from kstreams.runtime.spark.tasks.snapshots import SNAPSHOTS
from kstreams.runtime.spark.tasks.state_cache import STATE_CACHE
from tests.spark.running import Row
from tests.spark.s3_server import S3Server, s3_server
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


class Place(NamedTuple):
    """Where applications of a test have their checkpoints, and what reaches it."""

    folder: Path
    location: Callable[[str], str]
    conf: Mapping[str, Any] = {}

    def run(self, name: str, builder: ks.StreamsBuilder | None = None) -> Stepped:
        """An application after `STEPS` steps, with snapshots of some of them."""
        settings = {"folder": self.folder / name, "checkpoint": self.location(name), **self.conf}
        app = Stepped(builder or counts(), TYPES, ["in"], **settings)
        for step in range(STEPS):
            app.step(ROWS[step * 4 : step * 4 + 4])
            SNAPSHOTS.wait()
        return app


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    pytest.importorskip("moto", reason="needs the dev extra")
    with s3_server() as running:
        yield running


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "folder":
        return Place(tmp_path, lambda name: str(tmp_path / name))
    running: S3Server = request.getfixturevalue("server")
    return Place(tmp_path, lambda name: running.location(f"{tmp_path.name}/{name}"), running.conf)


def files_of(app: Stepped, task: str, kind: str) -> list[str]:
    """The state files of a task, oldest first."""
    folder = f"state/{task}"
    return [f"{folder}/{name}" for name in sorted(app.program.storage.names(folder)) if name.endswith(kind)]


Harm = Callable[[Stepped, str, Stepped], bytes | None]
"""What stands in the place of a file of an application afterwards; the second one is another."""


def flipped(app: Stepped, name: str, _: Stepped) -> bytes:
    raw = bytearray(app.program.storage.read(name))
    raw[len(raw) // 2] ^= 4
    return bytes(raw)


def shortened(app: Stepped, name: str, _: Stepped) -> bytes:
    return app.program.storage.read(name)[:-3]


def missing(app: Stepped, name: str, _: Stepped) -> None:
    return None


def of_another_task(app: Stepped, name: str, _: Stepped) -> bytes:
    return app.program.storage.read(files_of(app, "0_0", Path(name).suffix)[-1])


def of_another_store(app: Stepped, name: str, other: Stepped) -> bytes:
    return other.program.storage.read(files_of(other, "1_0", Path(name).suffix)[-1])


def of_an_earlier_step(app: Stepped, name: str, _: Stepped) -> bytes:
    return app.program.storage.read(files_of(app, "1_0", Path(name).suffix)[-2])


def harmed(app: Stepped, kind: str, harm: Harm, place: Place) -> tuple[str, bytes]:
    """Do harm to the newest file of the second task; its name, and what it was."""
    other, storage = place.run("other", counts(ks.TimeWindows(size=1_000, grace=0))), app.program.storage
    name = files_of(app, "1_0", kind)[-1]
    whole, instead = storage.read(name), harm(app, name, other)
    storage.delete([name]) if instead is None else storage.write(name, instead)
    return name, whole


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (flipped, "is damaged: its content does not fit its digest"),
        (shortened, "is damaged: its content does not fit its digest"),
        (missing, "is missing: the checkpoint is incomplete"),
        (of_another_task, "is state of the task 0_0, not of 1_0"),
        (of_another_store, "holds the store 'totals' as timestamped-window"),
        (of_an_earlier_step, "holds changes of step 14, round 0, not changes of step 16"),
    ],
)
def test_changes_that_are_not_what_was_written_are_refused(harm: Harm, said: str, place: Place) -> None:
    expected = place.run("undisturbed").step(ROWS[36:], forget=True)
    app = place.run("app")
    name, whole = harmed(app, ".changes", harm, place)
    with pytest.raises(StateError, match=said) as caught:
        app.step(ROWS[36:], forget=True)
    assert app.program.storage.location_of(name) in str(caught.value)
    app.program.storage.write(name, whole)
    assert app.step(ROWS[36:], forget=True) == expected


@pytest.mark.parametrize("harm", [flipped, shortened, missing, of_another_task, of_another_store, of_an_earlier_step])
def test_a_snapshot_that_is_not_what_was_written_is_made_up_for(harm: Harm, place: Place) -> None:
    expected = place.run("undisturbed").step(ROWS[36:], forget=True)
    app = place.run("app")
    harmed(app, ".snapshot", harm, place)
    assert app.step(ROWS[36:], forget=True) == expected
