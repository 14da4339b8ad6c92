"""`kstreams connect` carries rows from sources to sinks, exactly once, alone or with others."""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from kstreams.cli import main
from tests.log.embedded.files import kill, start

FILE = """
[application]
id = "trades"

[sources.trades]
type = "csv"
location = "in/*.csv"
value = { id = "int", symbol = "str", price = "float", size = "int" }
key = "symbol"

[sinks.large]
from = "trades"
type = "sql"
url = "sqlite:///${TARGET}"
table = "large"
transforms = [
  { filter = "size >= 500" },
  { rename = { price = "unit_price" } },
  { set = { total = "unit_price * size" } },
  { drop = ["size"] },
]

[sinks.lake]
from = "trades"
type = "files"
location = "lake"
roll_interval = "200ms"
transforms = [{ cast = { size = "float" } }, { mask = ["symbol"] }]
"""
COMMAND = """
import os, sys
os.chdir(sys.argv[1])
from kstreams.cli import main
sys.exit(main(["connect", "trades.toml"]))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a connect file, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TARGET", "large.db")
    (tmp_path / "trades.toml").write_text(FILE)
    (tmp_path / "in").mkdir()
    return tmp_path


def trade(number: int) -> tuple[int, str, float, int]:
    return number, f"S{number % 7}", number % 100 / 4, number % 1_000


def write_trades(folder: Path, name: str, numbers: range) -> None:
    lines = ["id,symbol,price,size", *(",".join(map(str, trade(number))) for number in numbers)]
    (folder / "in" / f"{name}.tmp").write_text("\n".join(lines) + "\n")
    (folder / "in" / f"{name}.tmp").rename(folder / "in" / f"{name}.csv")


def large_rows(folder: Path) -> list[tuple[object, ...]]:
    """Return the rows of the database, as another library reads them."""
    with closing(sqlite3.connect(folder / "large.db", timeout=60)) as database:
        try:
            return database.execute("SELECT id, symbol, unit_price, total FROM large ORDER BY id").fetchall()
        except sqlite3.OperationalError:  # no table yet
            return []


def lake_rows(folder: Path) -> list[tuple[object, ...]]:
    """Return the rows of the Parquet files, as another library reads them."""
    if not list(folder.glob("lake/**/*.parquet")):
        return []
    query = f"SELECT id, symbol, price, size FROM read_parquet('{folder}/lake/**/*.parquet') ORDER BY id"
    return duckdb.sql(query).fetchall()


def expected_large(count: int) -> list[tuple[object, ...]]:
    rows = map(trade, range(count))
    return [(number, symbol, price, price * size) for number, symbol, price, size in rows if size >= 500]


def expected_lake(count: int) -> list[tuple[object, ...]]:
    return [(number, "", price, float(size)) for number, _, price, size in map(trade, range(count))]


def test_rows_go_through_transforms_into_a_database_and_files_and_new_ones_follow(folder: Path) -> None:
    for count in (3_000, 3_000, 4_000):
        write_trades(folder, f"to-{count}", range(0, 3_000) if count == 3_000 else range(3_000, 4_000))
        assert main(["connect", "trades.toml", "--until-end"]) == 0
        assert large_rows(folder) == expected_large(count)
        assert lake_rows(folder) == expected_lake(count)


def test_reset_reads_the_sources_again(folder: Path) -> None:
    write_trades(folder, "all", range(1_000))
    assert main(["connect", "trades.toml", "--until-end"]) == 0
    (folder / "large.db").unlink()
    assert main(["connect", "trades.toml", "--until-end", "--reset"]) == 0
    assert large_rows(folder) == expected_large(1_000)
    assert main(["reset", "trades.toml", "--dry-run"]) == 0


def test_check_explains_and_starts_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["connect", "trades.toml", "--check"]) == 0
    shown = capsys.readouterr().out
    assert "trades.toml on native" in shown
    assert "large-1-filter" in shown
    assert "trades.toml:11" in shown
    assert "exactly once: the target keeps the offset with the rows" in shown
    assert sorted(path.name for path in folder.iterdir()) == ["in", "trades.toml"]


def test_the_other_commands_take_the_file_as_well(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_trades(folder, "all", range(600))
    assert main(["topology", "trades.toml"]) == 0
    assert "Processor: large-2-rename" in capsys.readouterr().out
    assert main(["run", "trades.toml", "--until-end"]) == 0
    assert large_rows(folder) == expected_large(600)


def test_an_application_is_no_connect_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["connect", "app.py"]) == 2
    assert "`kstreams run app.py` runs an application" in " ".join(capsys.readouterr().err.replace("│", " ").split())


@pytest.mark.slow
def test_two_processes_with_the_same_file_share_the_work(folder: Path) -> None:
    for number in range(8):
        write_trades(folder, f"part-{number}", range(number * 500, number * 500 + 500))
    processes = [start(COMMAND, folder) for _ in range(2)]
    try:
        wait_for(folder, 4_000, seconds=60)
        assert all(process.poll() is None for process in processes)
    finally:
        for process in processes:
            kill(process)
    assert large_rows(folder) == expected_large(4_000)
    assert lake_rows(folder) == expected_lake(4_000)


@pytest.mark.parametrize(
    ("kills", "rows", "seed"), [(2, 10_000, 1), pytest.param(30, 100_000, 2, marks=[pytest.mark.slow])]
)
@pytest.mark.timeout(900)
def test_killed_processes_that_share_the_work_lose_and_repeat_nothing(
    folder: Path, kills: int, rows: int, seed: int
) -> None:
    print(f"seed {seed}")
    chosen = random.Random(seed)
    part = rows // (kills + 1)
    write_trades(folder, "part-0", range(rows - kills * part))
    processes = [start(COMMAND, folder) for _ in range(2)]
    try:
        for killed in range(kills):
            time.sleep(chosen.uniform(0.5, 2.5))
            first = rows - (kills - killed) * part
            write_trades(folder, f"part-{killed + 1}", range(first, first + part))
            number = chosen.randrange(2)
            kill(processes[number])
            processes[number] = start(COMMAND, folder)
        wait_for(folder, rows, seconds=240)
        assert all(process.poll() is None for process in processes)
    finally:
        for process in processes:
            kill(process)
    assert large_rows(folder) == expected_large(rows)
    assert lake_rows(folder) == expected_lake(rows)


def wait_for(folder: Path, count: int, *, seconds: float) -> None:
    """Wait until both targets have all rows."""
    deadline = time.monotonic() + seconds
    large = len(expected_large(count))
    while len(large_rows(folder)) < large or len(lake_rows(folder)) < count:
        assert time.monotonic() < deadline, f"{len(large_rows(folder))} of {large}, {len(lake_rows(folder))} of {count}"
        time.sleep(0.2)
