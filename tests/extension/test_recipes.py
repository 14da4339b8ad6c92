"""The recipes in CONTRIBUTING.md name every field of the descriptors, and nothing else."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from kstreams.dsl.operator import OperatorDescriptor
from kstreams.dsl.window_kinds import WindowKind
from kstreams.serdes import SerdeKind
from kstreams.state import StoreKind

RECIPES = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()


@pytest.mark.parametrize("descriptor", [OperatorDescriptor, WindowKind, StoreKind, SerdeKind])
def test_the_recipe_names_every_field(descriptor: type) -> None:
    (table,) = re.findall(rf"\| Field of `{descriptor.__name__}` \| Holds \|\n\|---\|---\|\n((?:\|.*\n)+)", RECIPES)
    named = [name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(named) == sorted(field.name for field in fields(descriptor))


def test_the_files_that_the_recipes_name_are_there() -> None:
    named = re.findall(r"`(kstreams/[\w/.]+)`|\((tests/[\w/.]+)\)", RECIPES)
    missing = [place for pair in named for place in pair if place and not (Path(__file__).parents[2] / place).exists()]
    assert missing == []
