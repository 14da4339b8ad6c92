"""A run in a notebook: its progress is shown in place, an interrupt ends it in good order, and the kernel goes on."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

ROOT = Path(__file__).parents[3]

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PREPARE = """
import kstreams as ks
from pathlib import Path
from tests.spark.running import Application, Row

spark = ks.spark.session({"spark.driver.memory": "1g"})
topology = ks.StreamsBuilder()
lines = topology.stream("lines", key=str, value=str)
lines.group_by(ks.value.str.upper(), key=str).count().to_stream().to("counts")
app = Application(spark, Path.cwd(), topology, {"lines": (str, str)}, **{"spark.kstreams.path": "PATH"})
app.create("lines").write(Row("lines", "k", "ab"[n % 2], n) for n in range(12))
"""
INTERRUPTED = """
run = ks.spark.start(topology, spark, app.settings)
run.show()
"""
AFTERWARDS = """
print(run.status, run.exception, spark.range(3).count())
"""
AGAIN = """
app.write(Row("lines", "k", "ab"[n % 2], n) for n in range(12, 20))
again = ks.spark.start(topology, spark, app.settings, once=True)
print(again.show(), {row.key: row.value for row in again.to_dataframe("counts", last_of_each_key=True).collect()})
again
"""


def texts(cell: Any) -> list[str]:
    """The texts of the outputs of a cell: what was printed, and the text in place of each display."""
    return [output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in cell.outputs]


async def executed(cells: list[Any], folder: Path) -> None:
    """Run the cells. Press the stop button in the second one, as soon as it shows that all records are processed."""
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(notebook, timeout=240, kernel_name="python3", allow_errors=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    async with client.async_setup_kernel(cwd=str(folder), env=environment):
        for number, cell in enumerate(cells):
            execution = asyncio.create_task(client.async_execute_cell(cell, number))
            if number == 1:
                while not execution.done() and not any("12 records in" in text for text in texts(cell)):
                    await asyncio.sleep(0.1)
                assert not execution.done(), cell.outputs
                await client.km.interrupt_kernel()
            await execution


@pytest.mark.parametrize("path", ["task", "relational"])
def test_progress_is_shown_in_place_and_an_interrupt_ends_the_run_and_not_the_kernel(tmp_path: Path, path: str) -> None:
    sources = [PREPARE.replace("PATH", path), INTERRUPTED, AFTERWARDS, AGAIN]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    asyncio.run(executed(cells, tmp_path))
    _, interrupted, afterwards, again = cells
    shown, error = (output for output in interrupted.outputs if output.output_type in ("display_data", "error"))
    assert error.ename == "KeyboardInterrupt"
    assert "<th>app</th>" in shown.data["text/html"]
    assert "<td>counts</td><td>2</td>" in shown.data["text/html"].replace("12</td>", "2</td>")
    assert texts(afterwards) == ["NOT_RUNNING None 3\n"]
    assert any("True {'A': 10, 'B': 10}" in text or "True {'B': 10, 'A': 10}" in text for text in texts(again))
    result = again.outputs[-1]
    assert result.output_type == "execute_result"
    assert "<table>" in result.data["text/html"]
    assert result.data["text/plain"].startswith("app NOT_RUNNING: 8 records in, ")
