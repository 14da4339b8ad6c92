"""`kstreams run`: runs an application on this machine."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from kstreams.app import App
from kstreams.cli import lines
from kstreams.cli.lines import LogFormat
from kstreams.cli.optional_address import OPTION
from kstreams.cli.options import AppFile, EngineName, LogDir, Settings, settings_of
from kstreams.cli.output import INTERRUPTED, counted


def run(
    app: AppFile,
    engine: Annotated[EngineName, typer.Option(help="The engine that runs it.")] = EngineName.NATIVE,
    threads: Annotated[int | None, typer.Option(min=1, help="Stream threads of the native engine.")] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes that share the tasks; a process that fails is started again.")
    ] = 1,
    until_end: Annotated[
        bool,
        typer.Option("--until-end", help="Process all records that the topics hold now, close open windows, and stop."),
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Process all records that the topics hold now, leave windows open, and stop.")
    ] = False,
    state_dir: Annotated[Path | None, typer.Option(help="Folder of the state stores.")] = None,
    log_dir: LogDir = None,
    reset: Annotated[
        bool,
        typer.Option("--reset", help="Delete offsets, state and internal topics first, to process all input again."),
    ] = False,
    serve: Annotated[
        str | None,
        typer.Option(
            OPTION,
            metavar="[HOST:PORT]",
            help="Answer queries over HTTP there; without an address, or with port 0, at a free port of this machine.",
        ),
    ] = None,
    log_format: Annotated[
        LogFormat | None,
        typer.Option(help="Form of the lines on standard error; default: `logging.format` of the configuration."),
    ] = None,
    config: Settings = None,
) -> None:
    """Run an application until it is interrupted (Ctrl-C, SIGTERM), or until the input ends.

    An interrupted application stops after the current record and commits. The exit status is 130 after Ctrl-C and 0
    after SIGTERM. A second Ctrl-C or SIGTERM ends it at once, like a crash.

    Settings on the command line take precedence over those of the application, of the environment and of
    `kstreams.toml`, in this order.

    The file of a package is imported as a part of the package, so that `from .rules import ...` works. Modules are
    imported from the current folder, its `src`, and Python's path. Lines of your own loggers at INFO are shown
    (`logging.level`), unless the application configures `logging` itself.

    Examples: `kstreams run app.py`, `kstreams run shop.app`, `kstreams run app.py --workers 4`,
    `kstreams run app.py --serve 127.0.0.1:8080`,
    `kstreams run app.py --engine spark --until-end -c spark.driver.memory=4g`
    """
    if until_end and once:
        raise typer.BadParameter("--until-end and --once exclude each other", param_hint="--once")
    _check_workers(workers, engine, serve, is_bounded=until_end or once)
    if serve is not None and engine is not EngineName.NATIVE:
        raise typer.BadParameter("only stores of the native engine answer over HTTP", param_hint=OPTION)
    from kstreams import app as application
    from kstreams.cli.progress import ProgressLine
    from kstreams.config import Config

    settings = overrides(config, threads, state_dir, log_dir, log_format)
    lines.structure(Config.of({"logging.format": log_format}))  # errors of loading have this form too
    loaded = application.load_app(app, settings)
    lines.structure(loaded.config)
    if reset:
        application.reset(loaded, engine=engine.value)
    lines.tell(_first_line(loaded, engine, until_end or once, workers))
    if workers > 1:
        ended_by = _run_workers(_command(app, threads, state_dir, log_dir, serve, log_format, config), workers)
    else:
        line = ProgressLine(lines.stream())
        loaded, around = _served(loaded, serve)
        ended_by = application.run(
            loaded, engine=engine.value, once=once, until_end=until_end, on_progress=line.show, around=around
        )
        line.finish()
    if ended_by is signal.SIGINT:
        raise typer.Exit(INTERRUPTED)


def _check_workers(workers: int, engine: EngineName, serve: str | None, *, is_bounded: bool) -> None:
    """Raise BadParameter for options that several processes do not support."""
    if workers > 1 and (is_bounded or engine is not EngineName.NATIVE):
        raise typer.BadParameter(
            "several processes run an application natively, and until they are stopped: use --threads with --once and "
            "--until-end, and executors on Spark",
            param_hint="--workers",
        )
    if workers > 1 and serve is not None and not serve.endswith(":0"):
        raise typer.BadParameter("processes cannot share a port: name port 0, and each takes one", param_hint=OPTION)


def _served(app: App, address: str | None) -> tuple[App, Callable[[Any], AbstractContextManager[None]] | None]:
    """Return the application with its address, and the context that serves queries. None if there is no address."""
    if address is None:
        return app, None
    from kstreams.server import Server
    from kstreams.server.instances import Instances

    server = Server(address, app.config)

    def tell(token: str) -> None:
        token_shown = (
            f"the token in {Instances(server.config).token_file}" if lines.are_structured() else f"the token {token}"
        )
        lines.tell(f"queries at {server.url} with {token_shown}")
        base_url = server.url.removesuffix("/v1")
        lines.tell(f"page at {page_address(base_url, None if lines.are_structured() else token)}")

    return replace(app, config=server.config), partial(server.serving, on_start=tell)


def page_address(base_url: str, token: str | None) -> str:
    """Return the address of a server's page. A browser sends no text after `#` to servers.

    Examples
    --------
    >>> page_address("http://127.0.0.1:8080", "secret")
    'http://127.0.0.1:8080/ui#token=secret'
    """
    return f"{base_url}/ui" if token is None else f"{base_url}/ui#{urlencode({'token': token})}"


def _first_line(app: App, engine: EngineName, ends: bool, workers: int) -> str:
    """Return one line with the application, its threads, its folders and the interval of results."""
    from kstreams.log import home_of

    config = app.config
    home = f"topics in {home_of(config)}"
    if engine is not EngineName.NATIVE:
        return f"{config.application_id} on {engine.value}: {home}"
    processes = f"{workers} processes"
    threads = counted(config["num.stream.threads"], "thread")
    threads_each = f" ({threads} each)" if workers > 1 else ""
    interval = config["commit.interval.ms"] / 1000
    results = "" if ends else f"; results at once, then at least every {interval:g} s (commit.interval.ms)"
    workers_shown = processes + threads_each if workers > 1 else threads
    return f"{config.application_id} on {workers_shown}: {home}, state in {config['state.dir']}{results}"


def _run_workers(command: list[str], count: int) -> signal.Signals | None:
    """Supervise processes that run a command. Return the signal that stopped them, if one did."""
    from kstreams.cli.workers import Workers
    from kstreams.os.stop_signals import stop_signals

    with stop_signals() as stop:
        Workers(command, count).run(stop)
    return stop.signal


def _command(
    app: str,
    threads: int | None,
    state_dir: Path | None,
    log_dir: Path | None,
    address: str | None,
    log_format: LogFormat | None,
    config: list[str] | None,
) -> list[str]:
    """Return the arguments of `kstreams` for each worker."""
    named = {
        "--threads": threads,
        "--state-dir": state_dir,
        "--log-dir": log_dir,
        OPTION: address,
        "--log-format": log_format,
    }
    options = [part for name, value in named.items() if value is not None for part in (name, str(value))]
    return ["run", app, *options, *(part for setting in config or () for part in ("-c", setting))]


def overrides(
    config: list[str] | None,
    threads: int | None,
    state_dir: Path | None,
    log_dir: Path | None,
    log_format: LogFormat | None = None,
) -> dict[str, object]:
    """Return the settings of the command line."""
    named = {
        "num.stream.threads": threads,
        "state.dir": state_dir,
        "log.dir": log_dir,
        "logging.format": log_format,
    }
    return settings_of(config) | {key: value for key, value in named.items() if value is not None}
