"""The order of the test files, and how the processes of a parallel run share them.

Half of the processes begin at the front, with the files that need Spark; the others begin at the back, with those that
take longest. So only half of them start a Spark session, and what is left for last is short.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

LONG = (
    "tests/memory/",
    "tests/columns/",
    "tests/faults/",
    "tests/examples/",
    "tests/crash/",
    "tests/docs/",
)
"""What takes tens of seconds without Spark, the longest last."""


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests by file: those that use the session `spark`, then the others; the files with most work at both ends."""
    on_spark = Counter(file_of(item) for item in items if "spark" in getattr(item, "fixturenames", ()))
    return sorted(items, key=lambda item: _place(file_of(item), on_spark))


def file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _place(file: str, on_spark: Counter[str]) -> tuple[int, int, str]:
    if on_spark[file]:
        return 0, -on_spark[file], file
    return 1, next((at for at, folder in enumerate(LONG) if file.startswith(folder)), -1), file


class BothEnds(LoadFileScheduling):  # type: ignore[misc]
    """Gives half of the processes files from the front, the others files from the back."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # the number of tests says little about their time

    def _split_scope(self, nodeid: str) -> str:
        """A file, but all of `tests/docs/`: they share an environment that takes a minute to make."""
        scope: str = super()._split_scope(nodeid)
        return "tests/docs" if scope.startswith("tests/docs/") else scope

    def _assign_work_unit(self, node: Any) -> None:
        if self.nodes.index(node) >= len(self.nodes) // 2:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)
