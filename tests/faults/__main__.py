"""Faults that are let loose on an application, and a judge that counts: `python -m tests.faults SCENARIO`.

    python -m tests.faults kill-app --home kafka --rounds 30 --records 100000 --seed 7

prints the counts of records, kills, faults, duplicates, losses and order violations, and the longest time without
output. The exit status is 1 when a promise is broken. The judge is a process that shares no code with kstreams: it
writes the input, reads the topics with its own readers, and computes the results in plain Python.
"""

from __future__ import annotations

import argparse
import signal
import sys

from tests.faults.request import AT_LEAST_ONCE, EXACTLY_ONCE, Request
from tests.faults.scenarios import SCENARIOS


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    scenario = SCENARIOS[options.scenario]
    if options.home not in scenario.homes or options.engine != scenario.engine:
        sys.stderr.write(f"{scenario.name} runs with --engine {scenario.engine} --home {'|'.join(scenario.homes)}\n")
        return 2
    request = Request(
        home=options.home,
        engine=options.engine,
        seed=options.seed,
        rounds=scenario.rounds if options.rounds is None else options.rounds,
        records=scenario.records if options.records is None else options.records,
        guarantee=options.guarantee,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends like an interrupt: with nothing left behind
    counts = scenario.run(request)
    violations = counts.violations(is_once=request.is_once)
    where = f"{scenario.name}, {request.home}, {request.engine}, {request.guarantee}, seed {request.seed}"
    sys.stdout.write(f"{where}\n{counts.text()}\n{'VIOLATED: ' + '; '.join(violations) if violations else 'held'}\n")
    return int(bool(violations))


def _parser() -> argparse.ArgumentParser:
    names = "\n".join(
        f"  {each.name:26}{each.title} ({each.engine}; {', '.join(each.homes)})" for each in SCENARIOS.values()
    )
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults",
        description=f"{__doc__}\nscenarios:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenario", choices=list(SCENARIOS), metavar="SCENARIO")
    parser.add_argument("--home", choices=["embedded", "kafka"], default="embedded")
    parser.add_argument("--engine", choices=["native", "spark"], default="native")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, help="the number of faults")
    parser.add_argument("--records", type=int)
    parser.add_argument("--guarantee", choices=[EXACTLY_ONCE, AT_LEAST_ONCE], default=EXACTLY_ONCE)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
