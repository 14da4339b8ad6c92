"""`make conformance`: the recorded cases on every engine, with one line `N passed, N failed` for each.

    python -m tests.conformance [--sample] [--engine driver|native|kafka|spark] [--path task|relational]

The driver compares descriptions, rows and stores; the native runtime, over the embedded log and over a real Kafka
(`kafka`), rows and stores; on Spark see `on_spark`. With `--path`, cases go through the log, the queries and the sinks
of the Spark engine, all operators on that path (`on_spark_engine`).
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
from collections.abc import Callable
from functools import partial

from tests.conformance import on_kafka, on_native, on_spark, on_spark_engine, recorded
from tests.conformance.better import REASONS
from tests.conformance.test_driver import FAMILIES, differences
from tests.support.kafka_cluster import can_run


def on_driver(cases: list[recorded.Case]) -> list[str]:
    return [case["name"] for case in cases if differences(case, None) or differences(case, 7)]


def on_native_runtime(cases: list[recorded.Case]) -> list[str]:
    return [case["name"] for case in cases if on_native.differs(case) or on_native.differs(case, cached=False)]


ENGINES: dict[str, Callable[[list[recorded.Case]], list[str]]] = {
    "driver": on_driver,
    "native": on_native_runtime,
    "kafka": on_kafka.failures,
    "spark": on_spark.failures,
}

PATHS = ("task", "relational")
BY_PATH = {path: f"spark, {path} path" for path in PATHS}
"""The Spark engine as a whole, by the path that all operators take."""

ENGINES |= {name: partial(on_spark_engine.failures, path=path) for path, name in BY_PATH.items()}

_IN_PART = on_native.UPDATES_COUNTED, "it is compared only without the record cache"
IN_PART = {"native": _IN_PART, "kafka": _IN_PART}
"""Cases of which an engine can show a part only, and which: docs/explanation/conformance.md says why."""

_NOT_AT_ONCE = "their order depends on when records arrive, or an operator has no such path"
COMPARABLE: dict[str, tuple[Callable[[list[recorded.Case]], list[recorded.Case]], str]] = {
    "kafka": (on_kafka.comparable, on_kafka.LEFT_OUT),
    **{name: (partial(on_spark_engine.suitable, path=path), _NOT_AT_ONCE) for path, name in BY_PATH.items()},
}
"""Which cases an engine can run, where not all, and why not the others."""


CHOICES = tuple(name for name in ENGINES if name not in BY_PATH.values())


def is_missing(engine: str) -> str | None:
    """What an engine needs that is not on this machine."""
    if engine.startswith("spark") and shutil.which("java") is None:
        return "Java"
    return "Java, or Maven" if engine == "kafka" and not can_run() else None


def chosen(sample: bool) -> list[recorded.Case]:
    """All cases, or every sixth of each family."""
    return [case for family in FAMILIES for case in recorded.cases(family)[:: 6 if sample else 1]]


def compare(engine: str, cases: list[recorded.Case]) -> int:
    """Print what differs, what cannot be compared and how many passed; how many failed."""
    comparable, why = COMPARABLE.get(engine, (list, ""))
    ours = comparable(cases)
    names = ENGINES[engine](ours)
    for name in names:
        print(f"{engine}: {name} differs")
    in_part, said = IN_PART.get(engine, ((), ""))
    for name in sorted({case["name"] for case in ours}.intersection(in_part)):
        print(f"{engine}: {name} in part: {said}")
    for name in sorted({case["name"] for case in ours}.intersection(REASONS)):
        print(f"{engine}: {name} better than recorded: {REASONS[name]}")
    if len(ours) < len(cases):
        print(f"{engine}: {len(cases) - len(ours)} of {len(cases)} cases left out: {why}")
    print(f"{engine}: {len(ours) - len(names)} passed, {len(names)} failed", flush=True)
    return len(names)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", action="store_true", help="every sixth case of each family")
    parser.add_argument("--engine", choices=CHOICES, action="append", help="only this one (may be repeated)")
    parser.add_argument("--path", choices=PATHS, help="the Spark engine as a whole, all operators on this path")
    options = parser.parse_args()
    logging.getLogger("kstreams").setLevel(logging.ERROR)  # the cases drop records on purpose
    failed = 0
    for engine in [BY_PATH[options.path]] if options.path else options.engine or CHOICES:
        if missing := is_missing(engine):
            print(f"{engine}: skipped, there is no {missing} here")
        else:
            failed += compare(engine, chosen(options.sample))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
