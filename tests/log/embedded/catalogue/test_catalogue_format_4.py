"""A catalogue of format 4, which had no quotas: it is upgraded when it is opened."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kstreams.errors import CorruptLogError
from kstreams.log import open_log, verify
from kstreams.log.embedded.log import EmbeddedLog
from tests.log.embedded.killed_log import copy, state


def in_format_4(killed: Path, folder: Path) -> Path:
    """The log as a kstreams without quotas wrote it."""
    copy(killed, folder)
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as old:
        old.execute("DROP TABLE quotas")
        old.execute("PRAGMA user_version = 4")
    return folder


def test_a_log_of_format_4_is_upgraded_when_it_is_opened(killed: Path, tmp_path: Path) -> None:
    whole = state(copy(killed, tmp_path / "whole"))
    folder = in_format_4(killed, tmp_path / "log")
    assert verify(folder) == []
    assert state(folder) == whole
    assert verify(folder) == []
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (5,)
    with open_log(folder) as log, log.admin() as admin:
        admin.alter_client_quotas("reports", {"producer_byte_rate": 1_000})
    with open_log(folder) as log, log.admin() as admin:
        assert admin.client_quotas() == {"reports": {"producer_byte_rate": 1_000}}
    assert verify(folder) == []


def test_quotas_are_rebuilt_from_the_journal(tmp_path: Path) -> None:
    with open_log(tmp_path) as log, log.admin() as admin:
        admin.alter_client_quotas(None, {"consumer_byte_rate": 5_000})
    for path in tmp_path.glob("catalogue.sqlite*"):
        path.unlink()
    with open_log(tmp_path) as log, log.admin() as admin:
        assert admin.client_quotas() == {None: {"consumer_byte_rate": 5_000}}


@pytest.mark.parametrize("row", ["'a', 'producer_byte_rate', 0", "'a', 'bytes', 5"])
def test_a_quota_that_cannot_be_is_one_clear_error(tmp_path: Path, row: str) -> None:
    with open_log(tmp_path) as log:
        assert isinstance(log, EmbeddedLog)
        with log.catalogue.write() as database:
            database.execute(f"INSERT INTO quotas VALUES ({row})")
    assert "the quota" in verify(tmp_path)[0].what
    with pytest.raises(CorruptLogError, match="the quota"):
        open_log(tmp_path)
