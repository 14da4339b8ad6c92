"""Here columns are taken wherever they can be, whether it pays or not: what they do is looked at, not how fast."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kstreams.processor.columns import session_target, thinning


@pytest.fixture(autouse=True, scope="package")
def columns_always() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thinning, "WORTH", 1.0)
        patch.setattr(session_target, "RUNS_PER_ROW", 1.0)
        patch.setattr(session_target, "TURNS", 100)
        yield
