"""A process that is killed at random moments leaves each row once in the target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tests.connectors.lake.driving import appended
from tests.connectors.lake.killed import PARTITIONS, kill_and_restart


def numbers_in_files(folder: Path) -> list[int]:
    rows = duckdb.sql(f"SELECT number FROM '{folder}/out/**/*.parquet' ORDER BY ALL").fetchall()
    return [number for (number,) in rows]


def twice(numbers: list[int]) -> list[int]:
    return sorted(numbers * PARTITIONS)


@pytest.mark.parametrize(("kind", "read"), [("files", numbers_in_files)])
def test_rows_that_are_appended(kind: str, read: Callable[[Path], list[int]], tmp_path: Path) -> None:
    kill_and_restart(kind, tmp_path, rows=4_000, step=100, kills=3, longest_s=0.25)
    assert read(tmp_path) == twice(appended(4_000))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("kind", "read"), [("files", numbers_in_files)])
def test_rows_that_are_appended_30_kills(kind: str, read: Callable[[Path], list[int]], tmp_path: Path) -> None:
    kill_and_restart(kind, tmp_path, rows=100_000, step=100, kills=30, longest_s=0.3)
    assert read(tmp_path) == twice(appended(100_000))
