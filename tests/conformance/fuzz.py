"""Random cases against the real Kafka Streams: recorded by it now, replayed on kstreams, compared as the recorded ones.

    python -m tests.conformance.fuzz [--seed N] [--count N] [--only FAMILY] [--keep FILE.jsonl]

Needs Java 17 and Maven, which fetches Kafka Streams' test driver. A case is named by its family and seed, and comes out
the same from the same seed. Where Kafka Streams loses results, the full answer takes their place (`better.py`).

The last line printed is `N passed, N failed`; the exit status is 0 when nothing failed.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.conformance.better import with_full_answer
from tests.conformance.families import FAMILIES
from tests.conformance.generate import random_case
from tests.conformance.recorded import Case, replay
from tests.support.java_programs import RECORDER, compiled

BATCHES = (None, 1, 7)


def recorded(cases: Iterable[Case]) -> Iterator[Case]:
    """The cases with what the real Kafka Streams puts out, or with the full answer where it may be at fault.

    Those it refuses are left out.
    """
    lines = "\n".join(json.dumps(case) for case in cases)
    with tempfile.TemporaryDirectory() as own:  # its stores must not lie where those of another run do
        java = ["java", "-Xmx1g", "-XX:+UseSerialGC", f"-Djava.io.tmpdir={own}", "-cp", compiled(RECORDER), "Recorder"]
        done = subprocess.run(java, input=lines, capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        case = json.loads(line)
        if "expected" in case:
            yield with_full_answer(case)
        else:
            print(f"{case['name']}: Kafka Streams refuses it: {case['error']}")


def differences(case: Case) -> list[str]:
    """What differs, for every way of cutting the input into batches."""
    found = []
    for batch in BATCHES:
        try:
            found += [f"{what} (batch {batch})" for what, _, _ in replay().check(case, batch)]
        except Exception as error:
            found.append(f"{type(error).__name__} (batch {batch}): {error}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="of the first case of each family")
    parser.add_argument("--count", type=int, default=10, help="cases of each family")
    parser.add_argument("--only", action="append", choices=FAMILIES, help="this family (may be repeated)")
    parser.add_argument("--keep", type=Path, help="write the recorded cases here, for replay.py")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)  # of dropped records; they are part of the game
    seeds = range(options.seed, options.seed + options.count)
    cases = list(recorded(random_case(family, seed) for family in options.only or FAMILIES for seed in seeds))
    if options.keep:
        options.keep.write_text("".join(json.dumps(case) + "\n" for case in cases))
    failed = 0
    for case in cases:
        found = differences(case)
        failed += bool(found)
        if found:
            print(f"{case['name']}: {', '.join(found)[:300]}", flush=True)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
