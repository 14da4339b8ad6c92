"""Runs every module here that has `run() -> dict[str, float]`, prints a table, and puts it into RESULTS.md.

RESULTS.md has one section a module, with its latest figures; git has the earlier ones.

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
    for name in sys.argv[1:] or _names():
        section = _measured(name)
        print(section, flush=True)
        RESULTS.write_text(with_section(RESULTS.read_text(), section))


def with_section(page: str, section: str) -> str:
    """Return a page with a section in place of the one of the same name, or at its end.

    Examples
    --------
    >>> with_section("# Results\\n\\n## a: one\\n\\n1\\n\\n## b: two\\n\\n2\\n", "## a: one\\n\\n3\\n")
    '# Results\\n\\n## a: one\\n\\n3\\n\\n## b: two\\n\\n2\\n'
    """
    head, *sections = re.split(r"(?m)^(?=## )", page)
    name = _name(section)
    sections = [section if _name(existing) == name else existing for existing in sections]
    if section not in sections:
        sections.append(section)
    return "\n".join(f"{part.strip()}\n" for part in [head, *sections])


def _name(section: str) -> str:
    """Return what stands before the colon in the heading of a section."""
    return section.partition("\n")[0].partition(":")[0]


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
    """Run a module, and return its section."""
    load = os.getloadavg()[0]
    start = time.perf_counter()
    module = _module(name)
    try:
        table = _measured_table(module)
    except Exception as error:
        table = f"did not run: {type(error).__name__}: {error}\n"
    took_s = time.perf_counter() - start
    question = (module.__doc__ or "").partition("\n")[0].rstrip(".")
    about = (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {machine()}, commit {commit()}, load {load:.1f}; took {took_s:.0f} s"
    )
    return f"## {name}: {question}\n\n`python -m benchmarks {name}`, {about}.\n\n{table}"


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
