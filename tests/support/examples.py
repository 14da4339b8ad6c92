"""How much a test tries: all of it in `make test-all`, a part in `make test`."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

import pytest

PART = 1 if os.environ.get("KSTREAMS_TEST_EXAMPLES") == "all" else 3


def examples(number: int) -> int:
    """So many examples of a property when all tests run, a third of them when only quick ones do."""
    return number // PART


def few_of(cases: Collection[Any], count: int) -> list[Any]:
    """The cases of a parametrized test: all but `count` of them, spread over the whole, are left to `make test-all`."""
    quick = {number * len(cases) // count for number in range(count)}
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=[] if at in quick else pytest.mark.slow)
        for at, case in enumerate(cases)
    ]
