"""Runs every module here that has `run() -> dict[str, float]`, prints a table and appends it to RESULTS.md.

A module with `report() -> str` returns a Markdown table of its own.

A figure is in records a second unless its name ends with its unit in parentheses. Ratios are to "plain loop", a Python
loop with a dict over the same data in the same run: machines and days differ, ratios much less.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import platform
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("RESULTS.md")
PLAIN = "plain loop"
_UNIT = re.compile(r" \([A-Za-z/]+\)(?:,|$)")


def main() -> None:
    """Run the benchmarks named on the command line, all without names."""
    blocks = [_measured(name) for name in sys.argv[1:] or _names()]
    heading = f"\n## {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {machine()}, commit {commit()}\n"
    with RESULTS.open("a") as file:
        file.write(heading + "".join(blocks))


def _names() -> list[str]:
    modules = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    return [
        name
        for name in modules
        if name not in ("runner", "__main__") and {"run", "report"} & vars(_module(name)).keys()
    ]


def _module(name: str) -> object:
    return importlib.import_module(f"benchmarks.{name}")


def _measured(name: str) -> str:
    load, start = os.getloadavg()[0], time.perf_counter()
    try:
        table = _measured_table(_module(name))
    except Exception as error:
        block = f"\n### {name}\n\ndid not run: {type(error).__name__}: {error}\n"
    else:
        took = time.perf_counter() - start
        block = f"\n### {name}\n\n{table}\nTook {took:.0f} s; load of the machine before it {load:.1f}.\n"
    print(block, flush=True)
    return block


def _measured_table(module: Any) -> str:
    if hasattr(module, "report"):
        report: str = module.report()
        return report
    return _table(module.run())


def _table(figures: dict[str, float]) -> str:
    rows = ["| what | figure | to the plain loop |", "|---|---|---|"]
    for what, figure in figures.items():
        rows.append(f"| {what} | {_shown(what, figure)} | {_ratio(what, figures)} |")
    return "\n".join(rows) + "\n"


def _shown(what: str, figure: float) -> str:
    return f"{figure:,.3f}" if _UNIT.search(what) else f"{figure / 1e6:,.3f} M/s"


def _ratio(what: str, figures: dict[str, float]) -> str:
    """To the plain loop of the same case: 'case: plain loop' for 'case: anything'."""
    case = what.rpartition(": ")[0]
    plain = figures.get(f"{case}: {PLAIN}" if case else PLAIN)
    return f"{figures[what] / plain:.2f}" if plain and not _UNIT.search(what) else ""


def machine() -> str:
    """Return the processors and the Python of this machine."""
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            model = line.partition(": ")[2]
            break
    return f"{os.cpu_count()} x {model}, Python {platform.python_version()}"


def commit() -> str:
    """Return the commit of this checkout."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, cwd=RESULTS.parent, check=False)
    return found.stdout.strip() or "unknown"
