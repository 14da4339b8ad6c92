"""`kstreams state`: moves the state of an application from one engine to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kstreams.cli.options import AppFile, EngineName, LogDir, Settings, settings_of

if TYPE_CHECKING:
    from kstreams.app import App
    from kstreams.state.bundle import Bundle

state = typer.Typer(no_args_is_help=True)


@state.command("export")
def export_state(
    app: AppFile,
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="A new or empty folder.")],
    engine: Annotated[EngineName, typer.Option(help="The engine that ran it.")] = EngineName.NATIVE,
    log_dir: LogDir = None,
    config: Settings = None,
) -> None:
    """Write the state of a stopped application and the positions in its input into a folder.

    Example: `kstreams state export app.py --engine spark --to backfilled`
    """
    from kstreams import app as application

    _report("exported", application.export_state(_loaded(app, log_dir, config), to, engine.value))


@state.command("import")
def import_state(
    app: AppFile,
    source: Annotated[Path, typer.Option("--from", metavar="DIR", help="The folder that `export` has written.")],
    engine: Annotated[EngineName, typer.Option(help="The engine that will run it.")] = EngineName.NATIVE,
    replace: Annotated[bool, typer.Option("--replace", help="Delete the state that it has on this engine.")] = False,
    log_dir: LogDir = None,
    config: Settings = None,
) -> None:
    """Import a state, so that an application continues on another engine exactly where it was stopped.

    Example: `kstreams state import app.py --engine native --from backfilled`
    """
    from kstreams import app as application

    _report("imported", application.import_state(_loaded(app, log_dir, config), source, engine.value, replace=replace))


def _loaded(app: str, log_dir: Path | None, config: list[str] | None) -> App:
    from kstreams.app import load_app

    return load_app(app, settings_of(config) | ({"log.dir": str(log_dir)} if log_dir else {}))


def _report(action: str, bundle: Bundle) -> None:
    rows = sum(file.rows for task in bundle.tasks.values() for file in task.stores.values())
    read = ", ".join(f"{topic} {sum(ends.values())}" for topic, ends in bundle.origin.positions.items())
    typer.echo(f"{action} {rows} rows of {len(bundle.tasks)} tasks of {bundle.origin.application}; read so far: {read}")
