"""Here columns are taken wherever they can be, whether it pays or not: what they do is looked at, not how fast."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kstreams.processor.operators.session import columns as session_target
from kstreams.processor.task.columns import region as thinning


@pytest.fixture(autouse=True, scope="package")
def columns_always() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thinning, "LARGEST_SHARE", 1.0)
        patch.setattr(session_target, "MAX_RUNS_PER_ROW", 1.0)
        patch.setattr(session_target, "MAX_PASSES", 100)
        yield
