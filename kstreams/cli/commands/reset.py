"""`kstreams reset`: deletes the offsets and the state of an application, so that it processes all input again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kstreams.cli.commands.run import overrides
from kstreams.cli.options import AppFile, AsJson, EngineName, LogDir, Settings
from kstreams.cli.output import print_rows


def reset(
    app: AppFile,
    engine: Annotated[EngineName, typer.Option(help="The engine that ran it.")] = EngineName.NATIVE,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted, and delete nothing.")] = False,
    as_json: AsJson = False,
    state_dir: Annotated[Path | None, typer.Option(help="Folder of the state stores.")] = None,
    log_dir: LogDir = None,
    config: Settings = None,
) -> None:
    """Delete offsets, internal topics and local state of a stopped application, to process all input again.

    The command is refused while the application runs. An application whose reset was interrupted does not start until
    the reset is repeated. Input and output topics are not changed, nor local state on other machines.

    Examples: `kstreams reset app.py --dry-run`, `kstreams reset app.py`, `kstreams reset app.py --engine spark`
    """
    from kstreams import app as application
    from kstreams.log import home_of

    loaded = application.load_app(app, overrides(config, None, state_dir, log_dir))
    home_of(loaded.config).check()
    deletions = application.reset(loaded, engine=engine.value, dry_run=dry_run)
    name = loaded.config.application_id
    print_rows((deletion._asdict() for deletion in deletions), as_json=as_json, title=name)
    typer.echo(_summary(name, len(deletions), dry_run), err=True)


def _summary(name: str, count: int, dry_run: bool) -> str:
    if not count:
        return f"{name} has left nothing that could be deleted"
    return f"{name} would be reset" if dry_run else f"{name} was reset: its next run processes all input again"
