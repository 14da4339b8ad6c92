"""The order of the test files, and how the processes of a parallel run share them.

Half of the processes begin at the front, with the files that need Spark; the others begin at the back, with those that
take longest, and what is left for last is short. A process of the back starts a Spark session only where many tests
wait for one: a new one takes as much time as twenty tests on one that has run for a while.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
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


MANY_ON_SPARK = 60
"""So many tests are worth another Spark session."""

_ASKS_FOR_SPARK = re.compile(r"^def \w+\([^)]*\bspark\b", re.MULTILINE)


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
        self._root, self._on_spark = config.rootpath, set[Any]()

    def _split_scope(self, nodeid: str) -> str:
        """A file, but all of `tests/docs/`: they share an environment that takes a while to make."""
        scope: str = super()._split_scope(nodeid)
        return "tests/docs" if scope.startswith("tests/docs/") else scope

    def _reschedule(self, node: Any) -> None:
        """End a process for which nothing is left; without that, give it more when it is almost done."""
        is_almost_done = node in self.assigned_work and self._pending_of(self.assigned_work[node]) <= 2
        if self.workqueue and is_almost_done and not node.shutting_down and self._next_for(node) is None:
            node.shutdown()
        else:
            super()._reschedule(node)

    def _assign_work_unit(self, node: Any) -> None:
        scope = self._next_for(node) or next(iter(self.workqueue))
        self.workqueue.move_to_end(scope, last=False)
        if asks_for_spark(self._root / scope):
            self._on_spark.add(node)
        super()._assign_work_unit(node)

    def _next_for(self, node: Any) -> str | None:
        """The files that a process takes next; None when they are better left to the others."""
        if self.nodes.index(node) < len(self.nodes) // 2:
            return next(iter(self.workqueue))
        without = (scope for scope in reversed(self.workqueue) if not asks_for_spark(self._root / scope))
        return next(without, None) or self._next_on_spark(node)

    def _next_on_spark(self, node: Any) -> str | None:
        """Of what only needs Spark: this is for processes that have started it, unless there is much of it."""
        others = [other for other in self._on_spark & {*self.nodes} if other is not node and not other.shutting_down]
        waiting = sum(len(tests) for tests in self.workqueue.values())
        is_for_others = others and node not in self._on_spark and waiting < MANY_ON_SPARK
        return None if is_for_others else next(reversed(self.workqueue))


@cache
def asks_for_spark(file: Path) -> bool:
    """Whether functions of a test file ask for the session `spark`: who runs it starts one."""
    return file.name.startswith("test_") and _ASKS_FOR_SPARK.search(file.read_text()) is not None
