"""`make conformance`: the recorded cases on every engine, with one line `N passed, N failed` for each.

    python -m tests.conformance [--sample] [--engine driver|native|spark]

The driver compares descriptions, rows and stores; the native runtime rows and stores; on Spark see `on_spark`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable

from tests.conformance import on_native, on_spark, recorded
from tests.conformance.test_driver import FAMILIES, differences


def on_driver(cases: list[recorded.Case]) -> list[str]:
    return [case["name"] for case in cases if differences(case, None) or differences(case, 7)]


def on_native_runtime(cases: list[recorded.Case]) -> list[str]:
    return [case["name"] for case in cases if on_native.differs(case) or on_native.differs(case, cached=False)]


ENGINES: dict[str, Callable[[list[recorded.Case]], list[str]]] = {
    "driver": on_driver,
    "native": on_native_runtime,
    "spark": on_spark.failures,
}

IN_PART = {"native": (on_native.UPDATES_COUNTED, "it is compared only without the record cache")}
"""Cases of which an engine can show a part only, and which: docs/conformance.md says why."""


def chosen(sample: bool) -> list[recorded.Case]:
    """All cases, or every sixth of each family."""
    return [case for family in FAMILIES for case in recorded.cases(family)[:: 6 if sample else 1]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", action="store_true", help="every sixth case of each family")
    parser.add_argument("--engine", choices=ENGINES, action="append", help="only this one (may be repeated)")
    options = parser.parse_args()
    failed = 0
    for engine in options.engine or ENGINES:
        if engine == "spark" and shutil.which("java") is None:
            print("spark: skipped, there is no Java here")
            continue
        cases = chosen(options.sample)
        names = ENGINES[engine](cases)
        failed += len(names)
        for name in names:
            print(f"{engine}: {name} differs")
        in_part, said = IN_PART.get(engine, ((), ""))
        for name in sorted({case["name"] for case in cases}.intersection(in_part)):
            print(f"{engine}: {name} in part: {said}")
        print(f"{engine}: {len(cases) - len(names)} passed, {len(names)} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
