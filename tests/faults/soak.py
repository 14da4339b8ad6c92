"""Draws scenarios and seeds until the time is up: `python -m tests.faults.soak HOURS [SEED]`; see `make soak`."""

from __future__ import annotations

import random
import subprocess
import sys
from time import monotonic

from tests.faults.scenarios import SCENARIOS


def main(hours: float, seed: int) -> int:
    chance, end = random.Random(seed), monotonic() + hours * 3600
    runs = violated = 0
    while monotonic() < end:
        scenario = chance.choice(list(SCENARIOS.values()))
        places = ["--home", chance.choice(scenario.homes), "--engine", scenario.engine]
        command = [sys.executable, "-m", "tests.faults", scenario.name, *places, "--seed", str(chance.randrange(10**6))]
        violated += subprocess.run(command, check=False).returncode != 0
        runs += 1
    sys.stdout.write(f"{runs} runs, {violated} violated, seed {seed}\n")
    return int(violated > 0)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(10**6)))
