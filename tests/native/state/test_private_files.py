"""What an application keeps on disk is for its owner alone, and lies where it was put: no link leads elsewhere."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import KStreamsError
from kstreams.log import open_log
from kstreams.runtime.native.engine import run


def counted() -> ks.StreamsBuilder:
    topology = ks.StreamsBuilder()
    by_word = topology.stream("lines", key=str, value=str).group_by(lambda _, word: word, key=str)
    by_word.count(materialized="counts").to_stream().to("counts", key=str, value=int)
    return topology


def run_to_the_end(folder: Path) -> None:
    places = {"log.dir": str(folder / "log"), "state.dir": str(folder / "state")}
    run(counted(), Config.of({"application.id": "app", **places}), once=True)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A folder in which an application ran while the umask forbade nothing."""
    before = os.umask(0)
    try:
        folder = tmp_path / "home"
        with open_log(folder / "log") as log:
            log.admin().create_topic("lines")
            log.admin().create_topic("counts")
            with log.producer() as producer:
                producer.send("lines", b"k", b"word", timestamp=1)
        run_to_the_end(folder)
        yield folder
    finally:
        os.umask(before)


def test_files_are_for_their_owner_alone_whatever_the_umask_says(home: Path) -> None:
    paths = [home, *home.rglob("*")]
    assert any(path.suffix == ".sst" for path in paths)
    assert any(path.name == "catalogue.journal" for path in paths)
    for path in paths:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_what_a_killed_application_left_open_is_closed_at_the_next_start(home: Path) -> None:
    (database,) = home.glob("state/app/*/rocksdb")
    for path in (database, *database.iterdir()):
        path.chmod(0o777)
    run_to_the_end(home)
    assert stat.S_IMODE(database.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in database.iterdir()} == {0o600}


@pytest.mark.parametrize(
    "place",
    [
        "log/topics",
        "log/topics/lines@*",
        "log/topics/lines@*/0",
        "log/topics/lines@*/0/*.log",
        "log/topics/lines@*/0/head",
        "log/topics/lines@*/0/lock",
        "log/lock",
        "log/catalogue.sqlite",
        "log/catalogue.journal",
        "state/app",
        "state/app/*_0",
        "state/app/*_0/rocksdb",
        "state/app/*_0/rocksdb/CURRENT",
        "state/app/*_0/rocksdb/*.sst",
    ],
)
def test_a_link_in_the_place_of_a_file_or_folder_is_refused(home: Path, tmp_path: Path, place: str) -> None:
    path = sorted(home.glob(place))[-1]
    shutil.move(path, tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KStreamsError, match="symbolic link"):
        send_and_run(home)


def send_and_run(home: Path) -> None:
    with open_log(home / "log") as log, log.producer() as producer:
        producer.send("lines", b"k", b"more", timestamp=2)
    run_to_the_end(home)


def test_the_folders_that_the_user_chose_may_be_links(home: Path, tmp_path: Path) -> None:
    for name in ("log", "state"):
        shutil.move(home / name, tmp_path / name)
        (home / name).symlink_to(tmp_path / name)
    run_to_the_end(home)
