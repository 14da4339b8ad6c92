"""The recipe for an operator in CONTRIBUTING.md names every field of its descriptor, and nothing else."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from kstreams.dsl.operator import OperatorDescriptor, SparkForm
from tests.docs.pages import ROOT

RECIPE = (ROOT / "CONTRIBUTING.md").read_text().partition("## Adding an operator\n")[2].partition("\n## ")[0]
TABLES = [re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) for table in RECIPE.split("| Field | Holds |")[1:]]


@pytest.mark.parametrize(("kind", "named"), list(zip((OperatorDescriptor, SparkForm), TABLES, strict=True)))
def test_the_tables_name_the_fields(kind: type, named: list[str]) -> None:
    assert named == [field.name for field in fields(kind)]  # type: ignore[arg-type]


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:kstreams|tests)/[\w/.]+)`", RECIPE))))
def test_the_places_exist(path: str) -> None:
    assert Path(ROOT / path).exists()
