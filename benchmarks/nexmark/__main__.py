"""`python -m benchmarks.nexmark`: measures the queries over a Kafka broker that it starts, and writes RESULTS.md.

Without arguments, kstreams with few events in some ten minutes; `--full` takes more events and all systems.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path

from benchmarks.nexmark import report
from benchmarks.nexmark.generator import Settings
from benchmarks.nexmark.queries import QUERIES
from benchmarks.nexmark.runs import Broker, Result, measure
from benchmarks.nexmark.systems import System, systems
from benchmarks.runner import commit, machine
from tests.support.kafka_cluster import KafkaCluster

SMALL = 100_000
FULL = 2_000_000


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nexmark", description=__doc__)
    parser.add_argument("--full", action="store_true", help=f"{FULL:,} events and all systems")
    parser.add_argument("--events", type=int, help=f"how many events; default: {SMALL:,}")
    parser.add_argument("--systems", nargs="*", help="systems whose names and guarantees have one of these texts")
    parser.add_argument("--check", action="store_true", help="only print whether each result is right; writes no page")
    parser.add_argument("--queries", nargs="*", default=list(QUERIES), help="their names; default: all")
    parser.add_argument(
        "--results",
        type=Path,
        help="a file of JSON lines to which results are appended, and from which the page is written",
    )
    options = parser.parse_args()
    settings = Settings(options.events or (FULL if options.full else SMALL))
    texts = options.systems or ([""] if options.full else ["kstreams, expressions"])
    chosen = [system for system in systems() if any(text in f"{system.name}, {system.guarantee}" for text in texts)]
    load = os.getloadavg()[0]
    if options.check:
        _check(settings, chosen, options.queries)
        return
    results = _measured(settings, chosen, options.queries, options.results)
    heading = f"{machine()}, commit {commit()}, {settings.events:,} events, load of the machine before it {load:.1f}."
    report.write(results, systems(), heading)


def _check(settings: Settings, chosen: list[System], queries: list[str]) -> None:
    with KafkaCluster() as cluster:
        broker = Broker(cluster, settings)
        for query in queries:
            for system in (system for system in chosen if query in system.queries):
                result = measure(broker, system, query)
                print(f"{system.name}, {system.guarantee}, {query}: {result.wrong or 'equal to DuckDB'}", flush=True)


def _measured(settings: Settings, chosen: list[System], queries: list[str], file: Path | None) -> list[Result]:
    before = [] if file is None or not file.exists() else file.read_text().splitlines()
    by_run = {_run(result): result for result in (Result(**json.loads(line)) for line in before)}
    with KafkaCluster() as cluster:
        broker = Broker(cluster, settings)
        for query in queries:
            for system in chosen:
                if query in system.queries:
                    result = measure(broker, system, query)
                    by_run[_run(result)] = result
                    print(json.dumps(asdict(result)), flush=True)
                    if file is not None:
                        with file.open("a") as lines:
                            lines.write(json.dumps(asdict(result)) + "\n")
    return list(by_run.values())


def _run(result: Result) -> tuple[str, str, str]:
    return result.system, result.guarantee, result.query


if __name__ == "__main__":
    main()
