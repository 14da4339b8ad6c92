"""`kstreams sql`: asks the stores of an application, as its last commit or a step on Spark left them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kstreams.cli.commands.run import overrides
from kstreams.cli.engine_name import EngineName
from kstreams.cli.options import AppFile, AsJson, LogDir, Settings
from kstreams.cli.output import print_rows


def sql(
    app: AppFile,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A SELECT over the stores, each a table of its name.")],
    as_of: Annotated[
        int | None,
        typer.Option(
            metavar="MS", help="A time: versions that held then; windows and sessions that contain it. In milliseconds."
        ),
    ] = None,
    engine: Annotated[EngineName, typer.Option(help="The engine that ran it.")] = EngineName.NATIVE,
    step: Annotated[
        int | None, typer.Option(metavar="N", help="A step on Spark, counted from 0; default: the last one.")
    ] = None,
    as_json: AsJson = False,
    state_dir: Annotated[Path | None, typer.Option(help="Folder of the state stores.")] = None,
    log_dir: LogDir = None,
    config: Settings = None,
) -> None:
    """Ask the stores of a stopped application in SQL: as of its last commit, after a crash perhaps an earlier one.

    Of an application on Spark, which may run: as of its last step, or of an earlier one that the checkpoint keeps.

    Each store is a table with the columns `key` and `value`; `timestamp` where it keeps one; `window_start` and
    `window_end` of windows and sessions; `valid_from` and `valid_to` of versions. It needs DuckDB, and reads the stores
    of this machine. A program asks its own application while it runs, by `KafkaStreams.sql`.

    Example: `kstreams sql app.py 'select value, count(*) from "visits" group by value'`
    """
    from kstreams import app as application

    loaded = application.load_app(app, overrides(config, None, state_dir, log_dir))
    table = application.sql(loaded, query, as_of, engine.value, step=step)
    print_rows((row for batch in table.to_batches() for row in batch.to_pylist()), as_json=as_json)
