"""The contract of a home of topics on one home: `python -m tests.contract --home kafka` prints `N passed, N failed`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

import pytest


class OneHome:
    """Selects the tests of one home and counts what came of them."""

    def __init__(self, home: str) -> None:
        self._home, self.counts = home, Counter[str]()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if self._is_of_home(item)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            self.counts[report.outcome] += 1

    def _is_of_home(self, item: pytest.Item) -> bool:
        callspec = getattr(item, "callspec", None)
        return callspec is not None and callspec.params.get("log") == self._home


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the contract of a home of topics.")
    parser.add_argument("--home", choices=("embedded", "kafka"), required=True)
    given, more = parser.parse_known_args()
    chosen = OneHome(given.home)
    pytest.main(["tests/log/contract", "-q", "-p", "no:cacheprovider", "--no-header", *more], plugins=[chosen])
    counts = chosen.counts
    if counts["skipped"]:
        print(f"{counts['skipped']} ask for what {given.home} does not offer")
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return int(bool(counts["failed"]) or not counts["passed"])


if __name__ == "__main__":
    sys.exit(main())
