"""The types of a user's streams flow through every operator, as `mypy --strict` sees them."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from mypy import api

import kstreams as ks

USER_CODE = Path(__file__).with_name("user_code.py")
FACADES = [
    ks.KStream,
    ks.KTable,
    ks.KGroupedStream,
    ks.KGroupedTable,
    ks.TimeWindowedKStream,
    ks.SessionWindowedKStream,
    ks.CogroupedKStream,
]


@pytest.mark.slow
def test_user_code_passes_the_type_checker() -> None:
    report, problems, status = api.run(["--strict", str(USER_CODE)])
    assert status == 0, report + problems


@pytest.mark.parametrize("facade", FACADES, ids=lambda facade: facade.__name__)
def test_every_public_operator_stands_in_the_user_code(facade: type) -> None:
    said = set(re.findall(r"\.(\w+)\(", USER_CODE.read_text()))
    operators = {name for name, _ in inspect.getmembers(facade, inspect.isfunction) if not name.startswith("_")}
    assert operators - said == set()
