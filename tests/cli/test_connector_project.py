"""`kstreams init --connector`: a package with a source and a sink, which kstreams knows by name when installed."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.docs.pages import ROOT

NOTES = [(1, "buy tea"), (2, "drink it"), (5, "buy more")]


@pytest.mark.parametrize("name", ["a b", "Notes", "1st", "-", "a--b", ""])
def test_a_name_that_no_entry_point_has_is_refused(kstreams: Shell, name: str) -> None:
    outcome = kstreams("init", "--connector", name, "project")
    assert outcome.status == 1
    assert "is no name of a connector: take small letters, digits and hyphens" in outcome.err
    assert not (kstreams.folder / "project").exists()


@pytest.mark.parametrize("name", ["csv", "delta"])
def test_a_name_of_kstreams_itself_is_refused(kstreams: Shell, name: str) -> None:
    outcome = kstreams("init", "--connector", name)
    assert (outcome.status, outcome.err) == (1, f"kstreams: there is a connector '{name}' already: take another name\n")


def test_a_project_needs_a_folder_or_a_connector(kstreams: Shell) -> None:
    outcome = kstreams("init")
    assert outcome.status == 1
    assert outcome.err.startswith("kstreams: name the folder of the project: kstreams init FOLDER; or an example:")


def test_a_folder_with_files_stays_as_it_is(kstreams: Shell) -> None:
    (kstreams.folder / "kstreams-notes").mkdir()
    (kstreams.folder / "kstreams-notes" / "mine.txt").write_text("mine")
    outcome = kstreams("init", "--connector", "notes")
    assert (outcome.status, outcome.err) == (1, "kstreams: kstreams-notes exists and is not empty: name a new folder\n")
    assert [path.name for path in (kstreams.folder / "kstreams-notes").iterdir()] == ["mine.txt"]


@pytest.mark.slow
def test_the_installed_package_is_known_by_its_name_and_passes_its_tests(kstreams: Shell) -> None:
    """It is installed into a folder of its own, without the network."""
    printed = kstreams.ok("init", "--connector", "my-notes").out
    assert printed == "wrote kstreams-my-notes. Next:\n  cd kstreams-my-notes\n  pytest\n"
    project = kstreams.folder / "kstreams-my-notes"
    site = kstreams.folder / "site"
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--target", str(site)]
    run_in(kstreams.folder, [], "-m", "pip", "install", "-q", *options, str(project))
    assert (site / "kstreams_my_notes" / "sink.py").exists()

    (kstreams.folder / "test_connectors.py").write_bytes((project / "tests" / "test_connectors.py").read_bytes())
    assert "11 passed" in run_in(kstreams.folder, [site], "-m", "pytest", "-q", "test_connectors.py")

    with closing(sqlite3.connect(kstreams.folder / "in.db")) as database, database:
        database.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, note TEXT NOT NULL)")
        database.executemany("INSERT INTO notes VALUES (?, ?)", NOTES)
    run_in(kstreams.folder, [site], "-m", "kstreams", "connect", str(project / "copy.toml"), "--until-end")
    with closing(sqlite3.connect(kstreams.folder / "out.db")) as database:
        assert database.execute("SELECT * FROM copies ORDER BY id").fetchall() == NOTES


def run_in(folder: Path, paths: list[Path], *arguments: str) -> str:
    """Run Python in a folder, and return what it printed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*paths, ROOT]))}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{arguments}:\n{done.stdout}\n{done.stderr}"
    return done.stdout
