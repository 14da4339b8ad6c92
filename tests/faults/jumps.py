"""Wall clocks that jump, in one of three processes of an application: `python -m tests.faults.jumps`.

Before the start of a process, or while it runs, its wall clock goes an hour back or forward, a day back, or ten years
forward; those of the others stay. Each time the application comes to rest with the results of an undisturbed run. The
table says after how many seconds; the exit status is 1 when it does not, or results differ.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from tests.faults.takeover import (
    EXACTLY_ONCE,
    PROCESSES,
    Faults,
    Given,
    Results,
    Rows,
    compared,
    create_topics,
    input_rows,
    results_of,
    steps_back,
    undisturbed,
    write,
)
from tests.native.world import World

HOUR_MS = 3_600_000
JUMPS = {
    "no jump": 0,
    "an hour back": -HOUR_MS,
    "an hour forward": HOUR_MS,
    "a day back": -24 * HOUR_MS,
    "ten years forward": 10 * 365 * 24 * HOUR_MS,
}
MOMENTS = ("before the start", "in the middle")
LONGEST_S = 300.0
STOP_S = 30.0


class Jump(NamedTuple):
    """A jump of one process's wall clock.

    Parameters
    ----------
    by_ms : int
    moment : str
        One of `MOMENTS`.
    process : int
    """

    by_ms: int
    moment: str
    process: int


class Outcome(NamedTuple):
    """What came of a run.

    Parameters
    ----------
    seconds : float
        From the last input to the expected results; `LONGEST_S` and more: they did not come.
    faults : Faults
    has_stopped : bool
        Whether all processes ended in order when they were asked to.
    """

    seconds: float
    faults: Faults
    has_stopped: bool

    @property
    def is_right(self) -> bool:
        """Whether the application came to rest, and has lost nothing."""
        return self.seconds < LONGEST_S and self.has_stopped and self.faults == Faults(0, 0, 0, 0)


class Jumps:
    """Runs with jumps over the same input.

    Parameters
    ----------
    given : Given
        Of its arguments, those that concern input and application.
    folder : Path
    """

    def __init__(self, given: Given, folder: Path) -> None:
        self._given, self._folder = given, folder
        self._rows: Rows = input_rows(given)
        self._expected: Results = undisturbed(given, self._rows, folder / "undisturbed")

    def run(self, jump: Jump) -> Outcome:
        """One run, with three processes."""
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        world = World(folder, **self._given.settings)
        create_topics(world)
        half = len(self._rows) // 2
        with self._processes(world, jump) as running:
            write(world, self._rows[:half])
            sleep(2)
            shift_file(folder, jump.process).write_text(str(jump.by_ms))
            sleep(0.5)
            write(world, self._rows[half:])
            seconds, results = self._rest(world)
            has_stopped = stop(running)
        faults = compared(self._given, self._expected, results, steps_back(world))
        return Outcome(seconds, faults, has_stopped)

    @contextmanager
    def _processes(self, world: World, jump: Jump) -> Iterator[list[subprocess.Popen[bytes]]]:
        running = []
        try:
            for number in range(PROCESSES):
                is_early = number == jump.process and jump.moment == MOMENTS[0]
                file = shift_file(world.folder, number)
                file.write_text(str(jump.by_ms if is_early else 0))
                settings = json.dumps({key: str(value) for key, value in world.settings.items()})
                command = [sys.executable, "-m", "tests.faults.jumping_app", settings, str(file)]
                running.append(subprocess.Popen(command))
            yield running
        finally:
            for process in running:
                process.kill()
                process.wait()

    def _rest(self, world: World) -> tuple[float, Results]:
        begun = monotonic()
        while (results := results_of(world)) != self._expected and monotonic() - begun < LONGEST_S:
            sleep(0.5)
        return monotonic() - begun, results


def shift_file(folder: Path, process: int) -> Path:
    return folder / f"shift-{process}"


def stop(running: list[subprocess.Popen[bytes]]) -> bool:
    """Ask all processes to end; whether all did so in order."""
    for process in running:
        process.send_signal(signal.SIGTERM)
    end = monotonic() + STOP_S
    while any(process.poll() is None for process in running) and monotonic() < end:
        sleep(0.1)
    return all(process.poll() == 0 for process in running)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=6_000)
    parser.add_argument("--guarantee", default=EXACTLY_ONCE)
    arguments = parser.parse_args()
    folder, is_right = Path(tempfile.mkdtemp(prefix="kstreams-jumps-")), True
    try:
        jumps = Jumps(Given(rows=arguments.rows, guarantee=arguments.guarantee), folder)
        for moment in MOMENTS:
            for name, by_ms in JUMPS.items():
                outcomes = [jumps.run(Jump(by_ms, moment, process)) for process in range(PROCESSES)]
                is_right = is_right and all(outcome.is_right for outcome in outcomes)
                cells = (f"{each.seconds:5.1f} s{'' if each.is_right else ' WRONG'}" for each in outcomes)
                print(f"{name} {moment}: {', '.join(cells)}", flush=True)
                for outcome in outcomes:
                    if not outcome.is_right:
                        print(f"  {outcome}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
