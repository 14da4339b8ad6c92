"""`kstreams ui`: the address of a page that shows an application at work; runs it where it does not run yet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kstreams.cli.commands.run import page_address, run
from kstreams.cli.optional_address import ANY_PORT
from kstreams.cli.options import AppFile, LogDir, Settings


def ui(
    app: AppFile,
    threads: Annotated[int | None, typer.Option(min=1, help="Stream threads, where it is started.")] = None,
    state_dir: Annotated[Path | None, typer.Option(help="Folder of the state stores.")] = None,
    log_dir: LogDir = None,
    config: Settings = None,
) -> None:
    """Show an application at work on a page: its topology with live numbers, its stores, the ends of its topics.

    Prints the address of the page, with the token behind the `#`, where no server sees it. An application that answers
    already (`kstreams run --serve`) goes on as it is; any other one is run until Ctrl-C, with
    `metrics.recording.level=DEBUG`, so that every wire has a number. Records of topics are shown where the setting
    `server.tail.topics` names them.

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
