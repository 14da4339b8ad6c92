"""`kstreams top`: shows the activity of a running application live in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kstreams.cli.activity_tables import Rates, Rows, Totals, tables
from kstreams.cli.commands.query import StateDir
from kstreams.cli.output import json_line
from kstreams.cli.running import RunningApplication, require_running, running, settings_of_application
from kstreams.errors import StateError

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from kstreams.config import Config

_THROTTLED = "throttled"
_HEADINGS = {
    "per_second": "records/s",
    "stream_time": "stream time",
    "failed_threads": "failed",
}


def top(
    application_id: Annotated[
        str | None, typer.Argument(metavar="[APPLICATION]", help="Its id; default: the only one that answers.")
    ] = None,
    state_dir: StateDir = None,
    once: Annotated[bool, typer.Option("--once", help="Print one snapshot, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per snapshot.")] = False,
    interval: Annotated[float, typer.Option(min=0.2, max=60.0, help="Seconds between two snapshots.")] = 1.0,
) -> None:
    """Show the activity of an application: records per second, lag, dropped records, tasks and stores, until Ctrl-C.

    The page of `kstreams ui` shows the same with the topology. Rates are those between two snapshots.

    Examples: `kstreams top`, `kstreams top shop --once --json`
    """
    snapshots = _snapshots(settings_of_application(application_id, None, state_dir), interval)
    if once or as_json or not sys.stdout.isatty():
        for snapshot in islice(snapshots, 1 if once else None):
            _print(snapshot, as_json)
        return
    from rich.live import Live

    with Live(_drawn(next(snapshots)), screen=True, auto_refresh=False) as live:
        for snapshot in snapshots:
            live.update(_drawn(snapshot), refresh=True)


def _snapshots(config: Config, interval: float) -> Iterator[dict[str, Any]]:
    """Yield snapshots at the interval. The first one has rates too."""
    rates = Rates()
    totals = Totals()
    answers = _answers(config)
    before = next(answers)["instances"]
    rates.of(before)
    totals.of(before)
    while True:
        sleep(interval)
        answer = next(answers)
        instances = answer["instances"]
        present_rates = rates.of(instances)
        yield {"application_id": answer["application_id"], **tables(totals.of(instances), present_rates)}


def _answers(config: Config) -> Iterator[dict[str, Any]]:
    """Yield responses of the application. If all known instances have ended, find the instances that run now."""
    application: RunningApplication | None = require_running(config)
    while application is not None:
        try:
            answer = application.ask("/v1/activity")
        except StateError:
            application = running(config)
            if application is None:
                raise
            answer = application.ask("/v1/activity")
        yield answer


def _print(snapshot: dict[str, Any], as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json_line(snapshot))
    else:
        from rich.console import Console

        Console(file=sys.stdout).print(_drawn(snapshot))
    sys.stdout.flush()


def _drawn(snapshot: dict[str, Any]) -> Group:
    from rich.console import Group
    from rich.text import Text

    title = Text(snapshot["application_id"], style="bold")
    delays = (Text(throttle_sentence(row), style="yellow") for row in snapshot[_THROTTLED])
    named_rows = ((name, rows) for name, rows in snapshot.items() if name != _THROTTLED and isinstance(rows, list))
    return Group(title, *delays, *(_table(name, rows) for name, rows in named_rows if rows))


def throttle_sentence(row: dict[str, Any]) -> str:
    """Return the sentence about the delays of one kind of clients by quotas.

    Examples
    --------
    >>> throttle_sentence({"client": "producing", "share": 0.62, "ms": 4_200})
    'Quotas delay producing: 62 % of the time now, 4.2 s so far (kstreams quotas list).'
    """
    share = f"{row['share'] * 100:.0f} % of the time now, " if row["share"] else ""
    verb = "delay" if row["share"] else "delayed"
    return f"Quotas {verb} {row['client']}: {share}{row['ms'] / 1000:,.1f} s so far (kstreams quotas list)."


def _table(name: str, rows: Rows) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=name, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for heading in rows[0]:
        is_number = any(isinstance(row[heading], int | float) for row in rows)
        table.add_column(_HEADINGS.get(heading, heading), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(heading, value) for heading, value in row.items()))
    return table


def _cell(heading: str, value: Any) -> str:
    if value is None or (heading == "stream_time" and value < 0):
        return ""
    if heading == "stream_time":
        from kstreams.cli.commands.consume import time_text

        return time_text(value)
    if heading == "thread":
        return str(value).rpartition("-StreamThread-")[2]
    return f"{value:,}" if isinstance(value, int | float) and heading != "pid" else str(value)
