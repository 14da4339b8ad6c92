"""`kstreams connectors`: shows the sources and sinks of an application, pauses, resumes and restarts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kstreams.cli.operated_connectors import OperatedConnectors, operated_connectors
from kstreams.cli.options import AppFile, AsJson, EngineName, LogDir, Settings
from kstreams.cli.output import json_line, print_rows
from kstreams.errors import ConnectorError
from kstreams.kernel.clock import SystemClock

if TYPE_CHECKING:
    from kstreams.cli.operated_connectors import AnyConnector
    from kstreams.connectors.api import Position
    from kstreams.connectors.committed_offsets import CommittedOffsets
    from kstreams.connectors.connectors_topic import ConnectorControl, TargetState

connectors = typer.Typer(no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the connector, as `list` shows it.")]
Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="The names of connectors, as `list` shows them; or --all."),
]
Engine = Annotated[EngineName, typer.Option(help="The engine that runs the application.")]
AllConnectors = Annotated[bool, typer.Option("--all", help="All connectors of the application.")]


@connectors.command("list")
def list_(
    app: AppFile,
    as_json: AsJson = False,
    log_dir: LogDir = None,
    config: Settings = None,
    engine: Engine = EngineName.NATIVE,
) -> None:
    """List the connectors: kind, state, tasks, lag (records of the topic that a sink lacks), guarantee, topic, type.

    Example: `kstreams connectors list app.py`
    """
    with operated_connectors(app, engine, log_dir, config) as operated:
        rows = (_summary(operated, connector) for connector in operated.by_name.values())
        print_rows(rows, as_json=as_json, title=operated.application_id)


@connectors.command()
def status(
    app: AppFile,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Only this connector.")] = None,
    as_json: AsJson = False,
    log_dir: LogDir = None,
    config: Settings = None,
    engine: Engine = EngineName.NATIVE,
) -> None:
    """Show each task: its state, its process, the rows since the process has it, the age of the last commit, the error.

    States are RUNNING, PAUSED, RESTARTING (it waits before it is opened again), UNASSIGNED and FAILED (it has ended the
    application). Processes write rows and commits at least every 5 s. The tasks of a killed process are UNASSIGNED when
    its group has noticed: at once on the embedded log, after `session.timeout.ms` on Kafka.

    Examples: `kstreams connectors status app.py`, `kstreams connectors status app.py copy-sink --json`
    """
    with operated_connectors(app, engine, log_dir, config) as operated:
        shown = operated.by_name.values() if name is None else operated.named([name])
        rows = (row for connector in shown for row in _statuses(operated, connector))
        print_rows(rows, as_json=as_json, title=operated.application_id)
        if not operated.is_running:
            typer.echo(f"no process runs the connectors of {operated.application_id}", err=True)


@connectors.command()
def pause(
    app: AppFile,
    names: Names = None,
    every: AllConnectors = False,
    log_dir: LogDir = None,
    config: Settings = None,
    engine: Engine = EngineName.NATIVE,
) -> None:
    """Pause connectors, until they are resumed: tasks commit, then close their connections, in all processes.

    The rest of the application goes on. A paused connector stays paused over restarts of the application, and a run
    with `--until-end` or `--once` is refused. Records for a sink wait in its topic.

    Examples: `kstreams connectors pause app.py copy-sink`, `kstreams connectors pause app.py --all`
    """
    from kstreams.connectors.connectors_topic import TargetState

    _set_target_state(TargetState.PAUSED, names, every, operated_connectors(app, engine, log_dir, config))


@connectors.command()
def resume(
    app: AppFile,
    names: Names = None,
    every: AllConnectors = False,
    log_dir: LogDir = None,
    config: Settings = None,
    engine: Engine = EngineName.NATIVE,
) -> None:
    """Resume paused connectors: tasks are opened where they have committed.

    Examples: `kstreams connectors resume app.py copy-sink`, `kstreams connectors resume app.py --all`
    """
    from kstreams.connectors.connectors_topic import TargetState

    _set_target_state(TargetState.STARTED, names, every, operated_connectors(app, engine, log_dir, config))


@connectors.command()
def restart(
    app: AppFile,
    name: Name,
    task: Annotated[int | None, typer.Option("--task", "-t", metavar="INT", help="Only this task.")] = None,
    log_dir: LogDir = None,
    config: Settings = None,
    engine: Engine = EngineName.NATIVE,
) -> None:
    """Close the tasks of a running connector, and open them at once where they have committed.

    A task that waits after an error waits no longer.

    Examples: `kstreams connectors restart app.py copy-sink`, `kstreams connectors restart app.py copy-sink --task 2`
    """
    import msgspec

    with operated_connectors(app, engine, log_dir, config) as operated:
        connector = operated.named([name])[0]
        if not operated.is_running:
            raise ConnectorError(f"no process runs the connectors of {operated.application_id}: start it first")
        if operated.control(connector).is_paused:
            raise ConnectorError(f"{name} is paused: `kstreams connectors resume {app} {name}` opens its tasks")
        count = operated.partitions.get(connector.task_topic, 0)
        if task is not None and not 0 <= task < count:
            raise ConnectorError(f"{name} has no task {task}: its tasks are 0 to {count - 1}")

        def restarted(control: ConnectorControl) -> ConnectorControl:
            for number in range(count) if task is None else [task]:
                present = control.task(number)
                control = control.with_task(number, msgspec.structs.replace(present, restarts=present.restarts + 1))
            return control

        operated.change(connector, restarted)
    typer.echo(f"{name} restarts within a second", err=True)


@connectors.command()
def offsets(
    app: AppFile,
    name: Name,
    new: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="SPLIT=POSITION", help="Continue a split, or a partition, there; may be repeated."
        ),
    ] = None,
    forgotten: Annotated[
        list[str] | None,
        typer.Option("--reset", metavar="SPLIT", help="Begin a split, or a partition, anew; may be repeated."),
    ] = None,
    reset_all: Annotated[bool, typer.Option("--reset-all", help="Begin all of them anew.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done.")] = False,
    as_json: AsJson = False,
    log_dir: LogDir = None,
    config: Settings = None,
    engine: Engine = EngineName.NATIVE,
) -> None:
    """Show the committed position of each split of a source, or the offset of each partition of a sink; alter them.

    Positions of a source can be altered while it is paused, or while the application is stopped; their form is that of
    the present position. Records that are read again are written to its topic again.

    Offsets of a sink can be altered while the application is stopped. The target keeps the offset with the rows, so
    the partition gets a new identity. Rows that are written again double those in a target that appends. A sink of an
    internal topic can only go back to records that are not deleted yet.

    Examples: `kstreams connectors offsets app.py orders-feed --json`,
    `kstreams connectors offsets app.py orders-feed --set in/trades.csv=120 --reset in/old.csv`,
    `kstreams connectors offsets app.py copy-sink --set 0=1500 --dry-run`
    """
    from kstreams.connectors.committed_offsets import altered_positions

    with operated_connectors(app, engine, log_dir, config) as operated:
        connector = operated.named([name])[0]
        committed = operated.offsets(connector)
        if not (new or forgotten or reset_all):
            rows = committed.rows()
            print_rows(rows if as_json else map(_with_json_position, rows), as_json=as_json, title=name)
            return
        resets = list(committed.positions) if reset_all else forgotten or []
        positions = altered_positions(committed, new or [], resets)
        if not dry_run:
            operated.require_closed(connector)
            committed.alter(positions)
        print_rows(_moves(committed, positions, as_json=as_json), as_json=as_json, title=name)


@connectors.command("merge-files")
def merge_files(
    location: Annotated[
        str, typer.Argument(metavar="FOLDER", help="The folder of `ks.sinks.files`, or its URI in an object store.")
    ],
    target_bytes: Annotated[
        int, typer.Option(min=1, metavar="INT", help="Files of less than half of this size become files of this size.")
    ] = 128 << 20,
) -> None:
    """Merge the small Parquet files of a file sink.

    The sink may write meanwhile. A reader that lists the folder at that moment may miss rows, so merge while nobody
    reads. If the command ends in the middle, the next one finishes its work. Options of an object store come from the
    environment: `AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, `AWS_ALLOW_HTTP`, ...

    Examples: `kstreams connectors merge-files lake/trades`,
    `kstreams connectors merge-files s3://bucket/trades --target-bytes 500000000`
    """
    from kstreams import sinks

    if "://" not in location and not Path(location).is_dir():
        raise ConnectorError(f"there is no folder {location}: name the folder of a file sink")
    count = sinks.merge_files(location, target_bytes=target_bytes)
    typer.echo(f"merged {count:,} small files of {location}" if count else f"{location} has no small files to merge")


def _set_target_state(
    state: TargetState, names: list[str] | None, every: bool, opened: AbstractContextManager[OperatedConnectors]
) -> None:
    import msgspec

    if bool(names) == every:
        raise typer.BadParameter("name connectors, such as copy-sink, or give --all", param_hint="NAME")
    with opened as operated:
        for connector in operated.named(names or operated.by_name):
            operated.change(connector, lambda control: msgspec.structs.replace(control, target_state=state))
            effect = "within a second" if operated.is_running else "from the next start on: no process runs it now"
            typer.echo(f"{connector.name} is {state.value} {effect}", err=True)


def _moves(
    committed: CommittedOffsets, positions: Mapping[str, Position], *, as_json: bool
) -> Iterator[dict[str, object]]:
    for split, position in positions.items():
        before = committed.positions[split]
        places = {"before": before, "after": position}
        shown = places if as_json else {name: _json_text(place) for name, place in places.items()}
        yield {committed.unit: split, **shown}


def _with_json_position(row: Mapping[str, object]) -> dict[str, object]:
    """Return a row whose position is a text as `--set` takes it."""
    return {name: _json_text(value) if name == "position" else value for name, value in row.items()}


def _json_text(value: object) -> str | None:
    return None if value is None else json_line(value).strip()


def _summary(operated: OperatedConnectors, connector: AnyConnector) -> dict[str, object]:
    from kstreams.connectors.assigned_tasks import connector_state

    tasks = operated.tasks(connector)
    return {
        "connector": connector.name,
        "kind": connector.kind,
        "state": connector_state(operated.control(connector), tasks).value,
        "tasks": len(tasks),
        "lag": operated.offsets(connector).lag,
        "guarantee": connector.guarantee,
        "topic": connector.topic.name,
        "type": connector.type,
    }


def _statuses(operated: OperatedConnectors, connector: AnyConnector) -> Iterator[dict[str, object]]:
    now_ms = SystemClock().wall_ms()
    for task in operated.tasks(connector):
        record = task.record
        commit_ms = record.commit_time_ms
        yield {
            "connector": connector.name,
            "task": task.number,
            "state": task.state.value,
            "worker": task.worker or None,
            "rows": record.rows,
            "retries": record.retries,
            "commit_age_s": None if commit_ms is None else round(max(0, now_ms - commit_ms) / 1000, 1),
            "error": record.error or None,
        }
