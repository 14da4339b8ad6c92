"""An application file that reads tables: run by the command line, refused where there is no Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

APP = """
import msgspec
import kstreams as ks

class Sale(msgspec.Struct):
    shop: str
    amount: int

topology = ks.StreamsBuilder()
sales = topology.from_dataframe(ks.spark.parquet("sales"), key="shop", row=Sale, name="sales")
sales.filter(ks.col("amount") > 1).map_values(lambda sale: sale.amount, value=int).to("large")
config = {"application.id": "shops", "spark.kstreams.delta": "none", "spark.driver.memory": "1g"}
"""


def kstreams(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in a folder."""
    paths = os.pathsep.join([str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "kstreams", *arguments]
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=250, check=False, cwd=folder, env=environment
    )


def test_an_application_file_reads_a_folder_of_parquet_files(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "sales").mkdir()
    pq.write_table(pa.table({"shop": ["a", "b", "a"], "amount": [3, 1, 2]}), tmp_path / "sales" / "1.parquet")
    natively = kstreams(tmp_path, "run", "app.py", "--until-end")
    assert natively.returncode == 1
    _, said = natively.stderr.splitlines()
    assert said.startswith("kstreams: sales (from_dataframe() at app.py:10) reads a DataFrame of Spark")
    done = kstreams(tmp_path, "run", "app.py", "--engine", "spark", "--until-end")
    assert done.returncode == 0, done.stderr
    assert "done: 3 records in, 2 out" in done.stderr
    shown = kstreams(tmp_path, "consume", "spark-large", "--from-beginning", "--until-end")
    assert [line.split()[-1] for line in shown.stdout.splitlines()] == ["2", "3"]
