"""Measurements of systems that move rows: each in rounds, by wall clock and by CPU time, as one table.

Imports do not count: a program notes when its work begins. Each system runs once with few rows first, which takes what
does not depend on the rows, such as connections and imports during the work. This is subtracted, unless it is more than
half of the time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter, time

FEW_ROWS = 1_000
_LONGEST_RUN_S = 120
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Spent:
    """Seconds by the clock, and of CPU of the system's own processes. Brokers and databases do not count.

    Parameters
    ----------
    wall, cpu : float
    start : float
        The seconds before the work begins.
    """

    wall: float
    cpu: float
    start: float = 0.0


@dataclass
class Case:
    """A system that does a work.

    Parameters
    ----------
    work, system, guarantee : str
    rows : int
        Slow systems take fewer.
    run : callable
        Moves a number of rows, checks that they have arrived, and returns what it took.
    is_reference : bool
        True for the loop by hand with which the other systems of the work are compared.
    """

    work: str
    system: str
    guarantee: str
    rows: int
    run: Callable[[int], Spent]
    is_reference: bool = False
    fixed: Spent = Spent(0.0, 0.0)
    spent: list[Spent] = field(default_factory=list)
    error: str = ""

    @property
    def rate(self) -> float:
        """Rows a second, the median of the rounds."""
        return self.rows / self._variable(lambda spent: spent.wall)

    @property
    def cpu(self) -> float:
        """CPU seconds for a million rows."""
        return 1e6 * self._variable(lambda spent: spent.cpu) / self.rows

    def _variable(self, seconds_of: Callable[[Spent], float]) -> float:
        seconds = median(map(seconds_of, self.spent))
        fixed = seconds_of(self.fixed)
        return seconds if fixed > seconds / 2 else seconds - fixed

    @property
    def start(self) -> float:
        """Seconds before the work begins, the median of the rounds."""
        return median(spent.start for spent in self.spent)


def measure(cases: Sequence[Case], rounds: int) -> None:
    """Run all cases in turn, round by round. A case that fails is left out of the later rounds."""
    for case in cases:
        case.fixed = _attempt(case, FEW_ROWS, "few rows") or case.fixed
    for number in range(rounds):
        for case in cases:
            spent = None if case.error else _attempt(case, case.rows, f"round {number + 1}")
            if spent is not None:
                case.spent.append(spent)


def _attempt(case: Case, rows: int, phase: str) -> Spent | None:
    began = perf_counter()
    try:
        spent = case.run(rows)
    except Exception as error:
        text = " ".join(str(error).replace("|", "/").split())
        case.error = f"{type(error).__name__}: {text[-300:]}"
        spent = None
    took = perf_counter() - began
    result = case.error if spent is None else f"{spent.wall:.2f} s, {spent.cpu:.2f} s of CPU"
    print(f"{phase}: {case.work}: {case.system}: {rows:,} rows: {result} ({took:.1f} s in all)", flush=True)
    return spent


def table(cases: Sequence[Case]) -> str:
    """Return the measurements of all works as a Markdown table."""
    lines = [
        "| work | system | guarantee | rows | rows/s | to the loop by hand | CPU s per million | start s |",
        "|---|---|---|--:|--:|--:|--:|--:|",
    ]
    references = {case.work: case for case in cases if case.is_reference and case.spent}
    for case in cases:
        head = f"| {case.work} | {case.system} | {case.guarantee} |"
        if not case.spent:
            lines.append(f"{head} | did not run: {case.error} | | | |")
            continue
        reference = references.get(case.work)
        ratio = f"{case.rate / reference.rate:.2f}" if reference else ""
        figures = f"{case.rows:,} | {case.rate:,.0f} | {ratio} | {case.cpu:.2f} | {case.start:.1f}"
        lines.append(f"{head} {figures} |")
    return "\n".join(lines) + "\n"


def run_program(command: Sequence[str | Path], environment: Mapping[str, str], *, log: Path, begun: Path) -> Spent:
    """Run a program to its end. Processes that it has waited for count.

    Parameters
    ----------
    command : sequence
    environment : mapping of str to str
    log : Path
        The file of its output.
    begun : Path
        The file into which the program writes the time and its CPU seconds when its work begins.

    Raises
    ------
    RuntimeError
        If it fails, or takes too long.
    """
    started = time()
    with log.open("w") as output:
        process = subprocess.Popen(
            [*map(str, command)],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    limit = threading.Timer(_LONGEST_RUN_S, process.kill)
    limit.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    finally:
        limit.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"it ended with {process.returncode}: {log.read_text()[-600:]}")
    ended = time()
    begun_at, cpu_before = map(float, begun.read_text().split())
    return Spent(ended - begun_at, usage.ru_utime + usage.ru_stime - cpu_before, begun_at - started)


@contextmanager
def spent_by(process: int, results: list[Spent]) -> Iterator[None]:
    """Append what a process takes that runs before and after."""
    began = perf_counter()
    cpu = _cpu_of(process)
    yield
    results.append(Spent(perf_counter() - began, _cpu_of(process) - cpu))


def _cpu_of(process: int) -> float:
    fields = Path("/proc", str(process), "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND


def environment_with(name: str, requirements: Sequence[str], folder: Path) -> Path:
    """Return the Python of a virtual environment with packages, which is made the first time."""
    home = folder / name
    if not (home / "complete").exists():
        print(f"makes the virtual environment {home}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([home / "bin/pip", "-q", "install", *requirements], check=True)
        (home / "complete").touch()
    return home / "bin/python"
