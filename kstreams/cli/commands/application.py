"""`application`: the tree of commands, each of which has a file."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from kstreams.cli.commands.check import check
from kstreams.cli.commands.connect import connect
from kstreams.cli.commands.connectors import connectors
from kstreams.cli.commands.consume import consume
from kstreams.cli.commands.doctor import doctor
from kstreams.cli.commands.explain import explain
from kstreams.cli.commands.groups import groups
from kstreams.cli.commands.init import init
from kstreams.cli.commands.instances import lag, ps, status, stores
from kstreams.cli.commands.log import log
from kstreams.cli.commands.mirror import mirror
from kstreams.cli.commands.parked import parked
from kstreams.cli.commands.produce import produce
from kstreams.cli.commands.query import query
from kstreams.cli.commands.quotas import quotas
from kstreams.cli.commands.reset import reset
from kstreams.cli.commands.run import run
from kstreams.cli.commands.schemas import schemas
from kstreams.cli.commands.sql import sql
from kstreams.cli.commands.state import state
from kstreams.cli.commands.submit import submit
from kstreams.cli.commands.top import top
from kstreams.cli.commands.topics import topics
from kstreams.cli.commands.topology import topology
from kstreams.cli.commands.ui import ui
from kstreams.cli.optional_address import ServingCommand

PACKAGE = "kstreams-dsl"


def application() -> typer.Typer:
    """Return the Typer application with all commands."""
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Kafka Streams for Python, on a native engine and on Spark.",
    )
    app.callback()(_options)
    running = (ui, top, query, stores, ps, status, lag)
    app.command(cls=ServingCommand)(run)
    for command in (
        reset,
        submit,
        topology,
        explain,
        connect,
        check,
        produce,
        consume,
        mirror,
        sql,
        *running,
        init,
        doctor,
    ):
        app.command()(command)
    app.add_typer(topics, name="topics")
    app.add_typer(groups, name="groups")
    app.add_typer(schemas, name="schemas")
    app.add_typer(quotas, name="quotas")
    app.add_typer(parked, name="parked")
    app.add_typer(connectors, name="connectors")
    app.add_typer(log, name="log")
    app.add_typer(state, name="state")
    return app


def _show_version(show_version: bool) -> None:
    if show_version:
        typer.echo(f"kstreams {version(PACKAGE)}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show stack traces and all log lines; allowed anywhere on the line.")
    ] = False,
) -> None:
    """Declare the options, which their callbacks and `main` read."""
