"""The homes that must pass the contract: each is a function from a folder to an open log."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kstreams.log import Log, open_log

HOMES = {"embedded": lambda folder: open_log(folder / "log")}


@pytest.fixture(params=sorted(HOMES))
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    """An empty home of topics."""
    with HOMES[request.param](tmp_path) as home:
        yield home
