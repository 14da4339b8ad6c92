"""Faults of the files of an embedded log and of state, and readers beside a writer that replaces files."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from tests.faults import flips, readers
from tests.faults.request import Counts, Request
from tests.faults.scenarios.scenario import Scenario

TURN_S = 5


def bit_flips(request: Request) -> Counts:
    """One bit of a file of log, catalogue or state is flipped: the results are exact, or an error names the file."""
    done = list(flips.run(range(request.rounds), request.seed, jobs=1))
    wrong = [
        f"{each.kind} {each.file}, byte {each.place}, bit {each.bit}: {each.outcome} {each.message}"
        for each in done
        if each.outcome not in flips.GOOD
    ]
    return Counts(records=request.records * len(done), kills=1, faults=len(done), wrong=wrong)


def readers_beside_compaction(request: Request) -> Counts:
    """Readers check every offset while files are compacted, deleted and replaced; a round takes five seconds."""
    total: Counter[str] = Counter()
    for turn in range(request.rounds):
        with tempfile.TemporaryDirectory(prefix="kstreams-readers-") as folder:
            total += readers.run(Path(folder), TURN_S, readers=4, seed=request.seed + turn)
    wrong = [f"{total[name]} {name}" for name in ("deaths", "wrong") if total[name]]
    faults = total["compactions"] + total["retentions"] + total["deleted records"] + total["deleted topics"]
    return Counts(records=total["records"], faults=faults, wrong=wrong)


FILE_SCENARIOS = [
    Scenario(bit_flips, homes=("embedded",), records=1_500, rounds=12),
    Scenario(readers_beside_compaction, homes=("embedded",), records=0, rounds=1),
]
