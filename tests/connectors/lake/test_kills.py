"""A process that is killed at random moments leaves each row once in the target, and the last row of each key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import duckdb
import polars
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from tests.connectors.lake.driving import appended, upserted
from tests.connectors.lake.killed import KEYS, PARTITIONS, catalog_in, kill_and_restart

Numbers: TypeAlias = Callable[[Path], list[int]]
Rows: TypeAlias = Callable[[Path], list[tuple[int, int, int]]]


def numbers_in_files(folder: Path) -> list[int]:
    rows = duckdb.sql(f"SELECT number FROM '{folder}/out/**/*.parquet' ORDER BY ALL").fetchall()
    return [number for (number,) in rows]


def numbers_in_delta(folder: Path) -> list[int]:
    numbers: list[int] = polars.read_delta(str(folder / "table"))["number"].sort().to_list()
    return numbers


def rows_in_delta(folder: Path) -> list[tuple[int, int, int]]:
    return polars.read_delta(str(folder / "table")).select("part", "id", "number").sort("part", "id").rows()


def iceberg_table(folder: Path) -> Table:
    return load_catalog("default", **catalog_in(folder)).load_table("db.trades")


def numbers_in_iceberg(folder: Path) -> list[int]:
    numbers: list[int] = iceberg_table(folder).scan().to_polars()["number"].sort().to_list()
    return numbers


def rows_in_iceberg(folder: Path) -> list[tuple[int, int, int]]:
    """The key is one number: of the partition and of the id."""
    rows = iceberg_table(folder).scan().to_polars().select("key", "number").rows()
    return sorted((*divmod(key, 1_000_000), number) for key, number in rows)


def twice(numbers: list[int]) -> list[int]:
    return sorted(numbers * PARTITIONS)


def of_each_partition(rows: dict[int, int]) -> list[tuple[int, int, int]]:
    return sorted((partition, key, number) for partition in range(PARTITIONS) for key, number in rows.items())


APPENDED = [("files", numbers_in_files), ("delta append", numbers_in_delta)]
UPSERTED = [("delta upsert", rows_in_delta)]
FEW_COMMITS = 500
"""A commit of Iceberg takes some 50 ms, so that fewer ones are tried."""


def test_rows_that_are_appended(tmp_path: Path) -> None:
    kill_and_restart("files", tmp_path, rows=2_500, step=100, kills=2, longest_s=0.2)
    assert numbers_in_files(tmp_path) == twice(appended(2_500))


@pytest.mark.slow
def test_rows_that_are_upserted(tmp_path: Path) -> None:
    kill_and_restart("delta upsert", tmp_path, rows=2_000, step=100, kills=2, longest_s=0.25)
    assert rows_in_delta(tmp_path) == of_each_partition(upserted(2_000, KEYS))


@pytest.mark.slow
def test_rows_of_iceberg(tmp_path: Path) -> None:
    kill_and_restart("iceberg append", tmp_path, rows=2_000, step=FEW_COMMITS, kills=1, longest_s=0.3)
    assert numbers_in_iceberg(tmp_path) == twice(appended(2_000))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_100_000_rows_that_are_appended_to_iceberg(tmp_path: Path) -> None:
    kill_and_restart("iceberg append", tmp_path, rows=50_000, step=FEW_COMMITS, kills=30, longest_s=0.5)
    assert numbers_in_iceberg(tmp_path) == twice(appended(50_000))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_100_000_rows_that_are_upserted_in_iceberg(tmp_path: Path) -> None:
    kill_and_restart("iceberg upsert", tmp_path, rows=50_000, step=FEW_COMMITS, kills=30, longest_s=0.8)
    assert rows_in_iceberg(tmp_path) == of_each_partition(upserted(50_000, KEYS))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("kind", "numbers"), APPENDED)
def test_100_000_rows_that_are_appended(kind: str, numbers: Numbers, tmp_path: Path) -> None:
    kill_and_restart(kind, tmp_path, rows=50_000, step=100, kills=30, longest_s=0.3)
    assert numbers(tmp_path) == twice(appended(50_000))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("kind", "rows"), UPSERTED)
def test_100_000_rows_that_are_upserted(kind: str, rows: Rows, tmp_path: Path) -> None:
    kill_and_restart(kind, tmp_path, rows=50_000, step=100, kills=30, longest_s=0.4)
    assert rows(tmp_path) == of_each_partition(upserted(50_000, KEYS))
