"""A catalogue of format 3, which had no schemas: it is upgraded when it is opened."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kstreams.errors import CorruptLogError, LogError
from kstreams.log import open_log, verify
from kstreams.log.embedded.log import EmbeddedLog
from kstreams.log.embedded.schemas import LocalRegistry
from kstreams.schemas import Schema
from tests.log.embedded.files import start
from tests.log.embedded.killed_log import copy, state

LATER_TABLES = ("schemas", "schema_versions", "schema_rules", "quotas")


def in_format_3(killed: Path, folder: Path) -> Path:
    """The log as a kstreams without schemas wrote it."""
    copy(killed, folder)
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as old:
        for table in LATER_TABLES:
            old.execute(f"DROP TABLE {table}")
        old.execute("PRAGMA user_version = 3")
    return folder


def test_a_log_of_format_3_is_upgraded_when_it_is_opened(killed_before_schemas: Path, tmp_path: Path) -> None:
    whole = state(copy(killed_before_schemas, tmp_path / "whole"))
    folder = in_format_3(killed_before_schemas, tmp_path / "log")
    assert verify(folder) == []
    assert state(folder) == whole
    assert verify(folder) == []
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (5,)
    with open_log(folder) as log:
        assert isinstance(log, EmbeddedLog)
        assert LocalRegistry(log).register("orders-value", Schema('"int"')).version == 1
    assert verify(folder) == []


HOLDS = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1] + "/catalogue.sqlite", isolation_level=None)
database.execute("BEGIN")
database.execute("SELECT * FROM topics").fetchall()
print(1, flush=True)
sys.stdin.read()
"""


def test_a_log_is_not_upgraded_while_an_older_kstreams_uses_it(killed_before_schemas: Path, tmp_path: Path) -> None:
    folder = in_format_3(killed_before_schemas, tmp_path / "log")
    holder = start(HOLDS, folder)
    assert holder.stdout is not None
    holder.stdout.readline()
    with pytest.raises(LogError, match="older kstreams that still runs"):
        open_log(folder)
    holder.kill()
    holder.communicate()
    open_log(folder).close()
    assert verify(folder) == []


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE schemas SET type = 'XML'",
        "UPDATE schemas SET refs = '{'",
        "UPDATE schema_versions SET version = -1 WHERE subject = 'words0-value'",
        "INSERT INTO schema_rules VALUES ('', 'SIDEWAYS')",
    ],
)
def test_schemas_that_cannot_be_are_told_and_put_back(killed: Path, tmp_path: Path, change: str) -> None:
    whole = state(copy(killed, tmp_path / "whole"))
    folder = copy(killed, tmp_path / "log")
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as database, database:
        database.execute(change)
    assert verify(folder) != []
    assert state(folder) == whole
    assert verify(folder) == []


def test_both_copies_of_a_schema_that_cannot_be_are_one_clear_error(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        assert isinstance(log, EmbeddedLog)
        with log.catalogue.write() as database:
            database.execute("INSERT INTO schema_rules VALUES ('', 'SIDEWAYS')")
    assert "SIDEWAYS" in verify(tmp_path)[0].what
    with pytest.raises(CorruptLogError, match="SIDEWAYS"):
        open_log(tmp_path)
