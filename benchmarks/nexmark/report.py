"""The results as a page: a chart, a table of the systems by query, and a table of every figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.nexmark.queries import QUERIES
from benchmarks.nexmark.runs import Result
from benchmarks.nexmark.systems import System

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
CHART = HERE / "results.svg"
DISTURBED = 0.2
"""Cores that others use, from which on a run is disturbed."""
COLUMNS = f"""
- **whole**: events/s of all events, from the start of the process to the last write; **warm**: of the second half.
- **cores**, **core-s/M**: cores used, and core-seconds per million events (Nexmark's measure), of the system's
  processes in the whole run, without the broker; **warm core-s/M**: of the second half.
- **peak MiB**: the highest resident memory of all its processes; **state MB**: what it left in its state folder.
- **restart s**: killed with SIGKILL at half of the events, the seconds from the start of its successor to the first new
  result. The results are compared after that too.
- **others**: cores that anything else on the machine used, but for the broker. From {DISTURBED} on the run was
  disturbed.
"""


def write(results: Sequence[Result], systems: Sequence[System], heading: str) -> None:
    """Write RESULTS.md and the chart."""
    _draw(results)
    parts = [
        "# Nexmark over Kafka",
        "",
        "`make nexmark` writes this page for kstreams with few events, `python -m benchmarks.nexmark --full` for all",
        "systems and more events.",
        "Every result was compared with DuckDB's over the same events; a run whose results differ has no figures.",
        "",
        heading,
        "",
        "![Events per second of each query and system](results.svg)",
        "",
        "## Events per second, warm",
        "",
        *_overview(results, systems, lambda result: f"{result.warm_rate:,.0f}"),
        "",
        "## Core-seconds per million events, warm",
        "",
        *_overview(results, systems, lambda result: f"{result.warm_core_seconds:,.1f}"),
        "",
        "A dash: not measured, or the system lacks the query. In parentheses: other processes took a part of the",
        "machine, so that events per second say little.",
        "",
        "## What a system lacks",
        "",
        *_missing(systems),
        "",
        "## All figures",
        COLUMNS,
        *_details(results),
        "",
    ]
    RESULTS.write_text("\n".join(parts))


def _label(system: str, guarantee: str) -> str:
    return f"{system}, {guarantee}"


def _overview(results: Sequence[Result], systems: Sequence[System], figure: Callable[[Result], str]) -> list[str]:
    labels = [_label(system.name, system.guarantee) for system in systems]
    by_place = {(result.query, _label(result.system, result.guarantee)): result for result in results}
    lines = [f"| query | {' | '.join(labels)} |", "|---|" + "--:|" * len(labels)]
    for query in QUERIES:
        cells = [_cell(by_place.get((query, label)), figure) for label in labels]
        if any(cell != "-" for cell in cells):
            lines.append(f"| {query} | {' | '.join(cells)} |")
    return lines


def _missing(systems: Sequence[System]) -> list[str]:
    lines = ["| system | queries | why |", "|---|---|---|"]
    for name, missing in {system.name: system.missing for system in systems}.items():
        for reason in dict.fromkeys(missing.values()):
            queries = ", ".join(query for query in missing if missing[query] == reason)
            lines.append(f"| {name} | {queries} | {reason} |")
    return lines


def _cell(result: Result | None, figure: Callable[[Result], str]) -> str:
    if result is None:
        return "-"
    if result.wrong:
        return "failed"
    return f"({figure(result)})" if result.other_cores >= DISTURBED else figure(result)


def _details(results: Sequence[Result]) -> list[str]:
    lines = [
        "| query | system | guarantee | events | whole | warm | cores | core-s/M | warm core-s/M "
        "| peak MiB | state MB | restart s | others |",
        "|---|---|---|" + "--:|" * 10,
    ]
    for result in sorted(results, key=lambda result: (int(result.query[1:]), result.system, result.guarantee)):
        head = f"| {result.query} | {result.system} | {result.guarantee} | {result.events:,} |"
        if result.wrong:
            lines.append(f"{head} {result.wrong[:300].replace('|', '/')} |" + " |" * 8)
            continue
        restart = f"{result.restart_s:.1f}" if result.restart_s else ""
        rates = [f"{result.rate:,.0f}", f"{result.warm_rate:,.0f}", f"{result.cores:.2f}"]
        seconds = [f"{result.core_seconds:.1f}", f"{result.warm_core_seconds:.1f}"]
        sizes = [f"{result.peak_mib:,.0f}", f"{result.state_bytes / 1e6:,.1f}", restart, f"{result.other_cores:.2f}"]
        lines.append(f"{head} {' | '.join([*rates, *seconds, *sizes])} |")
    return lines


def _draw(results: Sequence[Result]) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "nexmark"  # the same figures give the same file
    right = [result for result in results if not result.wrong]
    labels = sorted({_label(result.system, result.guarantee) for result in right})
    queries = [query for query in QUERIES if any(result.query == query for result in right)]
    figure, axes = plt.subplots(figsize=(14, 5), layout="constrained")
    width = 0.8 / max(len(labels), 1)
    for number, label in enumerate(labels):
        rates = {result.query: result.warm_rate for result in right if _label(result.system, result.guarantee) == label}
        places = [place + number * width for place, query in enumerate(queries) if query in rates]
        axes.bar(places, [rates[query] for query in queries if query in rates], width, label=label)
    axes.set_yscale("log")
    axes.set_ylabel("events per second, warm")
    axes.set_xticks([place + 0.4 - width / 2 for place in range(len(queries))], queries)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize="small", ncols=2)
    figure.savefig(CHART, metadata={"Date": None})
    plt.close(figure)
