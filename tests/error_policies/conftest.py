"""The engines on which each policy is tried."""

from __future__ import annotations

from typing import Any

import pytest

from tests.error_policies.engines import ENGINES


@pytest.fixture(params=ENGINES)
def run(request: pytest.FixtureRequest) -> Any:
    return ENGINES[request.param]
