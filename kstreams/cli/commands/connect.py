"""`kstreams connect`: runs the sources and sinks of a connect file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kstreams.cli.commands.explain import explain
from kstreams.cli.commands.run import run
from kstreams.cli.lines import LogFormat
from kstreams.cli.options import LogDir, Settings


def connect(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A TOML file with sources, transforms and sinks.")],
    check: Annotated[
        bool, typer.Option("--check", help="Check the file and print how it would run, without a start.")
    ] = False,
    threads: Annotated[int | None, typer.Option(min=1, help="Stream threads.")] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes that share the work; a process that fails is started again.")
    ] = 1,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Read the sources to their end, let the sinks write all, and stop.")
    ] = False,
    state_dir: Annotated[Path | None, typer.Option(help="Folder of the state.")] = None,
    log_dir: LogDir = None,
    reset: Annotated[
        bool, typer.Option("--reset", help="Delete positions and internal topics first, to read the sources again.")
    ] = False,
    log_format: Annotated[
        LogFormat | None,
        typer.Option(help="Form of the lines on standard error; default: `logging.format` of the configuration."),
    ] = None,
    config: Settings = None,
) -> None:
    """Run sources and sinks without an application: what to read, change and write stands in one TOML file.

    A process that is started with the same file shares the work. The file is an application: `run`, `explain`,
    `topology`, `reset` and `check` take it as they take an `app.py`. By default it is processed exactly once.

    Example: this file, `trades.toml`, writes the large trades of CSV files to a table.

        [sources.trades]
        type = "csv"
        location = "in/*.csv"
        value = { symbol = "str", price = "float", size = "int" }
        key = "symbol"

        [sinks.large]
        from = "trades"
        type = "sql"
        url = "postgresql://ada:${PASSWORD}@db.example/shop"
        table = "large_trades"
        transforms = [{ filter = "size >= 1000" }, { set = { total = "price * size" } }]

    Examples: `kstreams connect trades.toml`, `kstreams connect trades.toml --check`,
    `kstreams connect trades.toml --until-end`
    """
    if not file.endswith(".toml"):
        raise typer.BadParameter(
            f"{file} is no TOML file: `kstreams run {file}` runs an application", param_hint="FILE"
        )
    if check:
        explain(file, config=config)
        return
    run(
        file,
        threads=threads,
        workers=workers,
        until_end=until_end,
        state_dir=state_dir,
        log_dir=log_dir,
        reset=reset,
        log_format=log_format,
        config=config,
    )
