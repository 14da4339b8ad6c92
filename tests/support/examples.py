"""How many examples a property is tried with: all in `make test-all`, a third in `make test`."""

from __future__ import annotations

import os

PART = 1 if os.environ.get("KSTREAMS_TEST_EXAMPLES") == "all" else 3


def examples(number: int) -> int:
    """So many when all tests run, a third of them when only quick ones do."""
    return number // PART
