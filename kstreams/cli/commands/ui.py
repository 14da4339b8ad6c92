"""`kstreams ui`: prints the address of an application's page, and runs the application if it does not run yet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kstreams.cli.commands.run import page_address, run
from kstreams.cli.optional_address import ANY_PORT
from kstreams.cli.options import AppFile, LogDir, Settings


def ui(
    app: AppFile,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Stream threads, if the command starts the application.")
    ] = None,
    state_dir: Annotated[Path | None, typer.Option(help="Folder of the state stores.")] = None,
    log_dir: LogDir = None,
    config: Settings = None,
) -> None:
    """Show an application on a page: its topology with live numbers, its stores, and the last records of its topics.

    The command prints the address of the page. The token is after `#`, which browsers do not send. If the application
    does not run with `--serve` yet, the command runs it until Ctrl-C, with `metrics.recording.level=DEBUG`, so that
    every wire has a number. The page shows records of the topics in `server.tail.topics`.

    Examples: `kstreams ui app.py`, `kstreams ui app.py -c 'server.tail.topics=*'`
    """
    from kstreams.app import load_app
    from kstreams.cli.commands.run import overrides
    from kstreams.server.instances import Instances

    settings = load_app(app, overrides(config, threads, state_dir, log_dir)).config
    instances = Instances(settings)
    running_instances = instances.running()
    if not running_instances:
        explicit_settings = list(config or ())
        if "metrics.recording.level" not in settings.explicit:
            explicit_settings.append("metrics.recording.level=DEBUG")
        run(app, threads=threads, state_dir=state_dir, log_dir=log_dir, serve=ANY_PORT, config=explicit_settings)
        return
    scheme = "https" if running_instances[0].certificate else "http"
    typer.echo(page_address(f"{scheme}://{running_instances[0].address}", instances.token()))
