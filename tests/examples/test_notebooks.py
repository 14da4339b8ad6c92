"""The notebook of the examples runs from top to bottom, and shows what it says."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "notebooks" / "orders_by_city.ipynb"

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def amounts() -> dict[str, int]:
    """What the orders of each city come to, by a plain loop: Ann lives in Bonn from noon on."""
    found = {"Bonn": 0, "Kiel": 0, "Ulm": 0}
    for number in range(240):
        minute = 6 * 60 + 3 * number
        city = ("Ulm" if minute < 12 * 60 else "Bonn", "Kiel", "Bonn")[number % 3]
        found[city] += number % 7 + 1
    return found


def test_a_dataframe_and_a_change_feed_become_a_dataframe_and_a_plot(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    client = nbclient.NotebookClient(notebook, timeout=240, kernel_name="python3")
    client.execute(cwd=str(tmp_path), env=environment)
    *_, plot, totals = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert any("image/png" in output.get("data", {}) for output in plot.outputs)
    shown = next(output.data["text/plain"] for output in totals.outputs if "data" in output)
    assert ast.literal_eval(shown) == amounts()


def test_the_notebook_is_kept_without_outputs() -> None:
    assert not any(cell.get("outputs") for cell in nbformat.read(NOTEBOOK, as_version=4).cells)
