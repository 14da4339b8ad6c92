"""A catalogue of format 2, which had no groups: it is upgraded when it is opened."""

import sqlite3
from contextlib import closing
from pathlib import Path

from kstreams.log import open_log, verify
from tests.log.embedded.killed_log import copy, state


def in_format_2(killed: Path, folder: Path) -> Path:
    """The log as a kstreams without groups wrote it."""
    copy(killed, folder)
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as old:
        for table in ("groups", "schemas", "schema_versions", "schema_rules", "quotas"):
            old.execute(f"DROP TABLE {table}")
        old.execute("PRAGMA user_version = 2")
    return folder


def test_a_log_of_format_2_is_upgraded_when_it_is_opened(killed_before_schemas: Path, tmp_path: Path) -> None:
    whole = state(copy(killed_before_schemas, tmp_path / "whole"))
    folder = in_format_2(killed_before_schemas, tmp_path / "log")
    assert verify(folder) == []
    assert state(folder) == whole
    assert verify(folder) == []
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (5,)
    with open_log(folder) as log, log.consumer({"group.id": "readers"}) as consumer:
        consumer.subscribe(["words"])
        assert sum(map(len, consumer.poll(timeout=60))) == 5


def test_an_upgrade_that_was_cut_off_is_completed(killed_before_schemas: Path, tmp_path: Path) -> None:
    whole = state(copy(killed_before_schemas, tmp_path / "whole"))
    folder = copy(killed_before_schemas, tmp_path / "log")
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as database:
        database.execute("PRAGMA user_version = 2")  # the table is there, the version is not
    assert state(folder) == whole
    assert verify(folder) == []
