"""`application`: the tree of commands, each of which has a file, and is imported when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from kstreams.cli.optional_address import ServingCommand

PACKAGE = "kstreams-dsl"


class Command(NamedTuple):
    """A command, or a group of commands.

    Parameters
    ----------
    module : str
        The module of this package that has the function, or the Typer application of the group, of the command's name.
    summary : str
        The first sentence of its help.
    cls : type of TyperCommand
    """

    module: str
    summary: str
    cls: type[TyperCommand] = TyperCommand


COMMANDS = {
    "run": Command(
        "run", "Run an application until it is interrupted (Ctrl-C, SIGTERM), or until the input ends.", ServingCommand
    ),
    "reset": Command(
        "reset",
        "Delete offsets, internal topics and local state of a stopped application, to process all input again.",
    ),
    "submit": Command("submit", "Package the application and kstreams, and run them with `spark-submit`."),
    "topology": Command(
        "topology",
        "Print the topology: in the format of Kafka Streams, as a Mermaid flowchart, as JSON, or as a picture (SVG).",
    ),
    "explain": Command("explain", "Show the path of every operator, and the reason."),
    "connect": Command(
        "connect",
        "Run sources and sinks without an application: what to read, change and write stands in one TOML file.",
    ),
    "check": Command(
        "check",
        "Show what a new version of an application would do to the state of the old version, and to schemas.",
    ),
    "produce": Command("produce", "Write each line of standard input as one record."),
    "consume": Command(
        "consume",
        "Print records: time, partition@offset, key and value; with `--json`, whole records as JSON objects.",
    ),
    "mirror": Command(
        "mirror",
        "Copy topics with their settings and group offsets from one home to another, exactly once, until interrupted.",
    ),
    "sql": Command("sql", "Query the stores of an application in SQL."),
    "ui": Command(
        "ui",
        "Show an application on a page: its topology with live numbers, its stores, and the last records of its "
        "topics.",
    ),
    "top": Command(
        "top",
        "Show the activity of an application: records per second, lag, dropped records, tasks and stores, until "
        "Ctrl-C.",
    ),
    "query": Command(
        "query",
        "Query a store with `queryable=True` of a running application, started with `kstreams run --serve`.",
    ),
    "stores": Command("instances", "List the stores of a running application that can be queried."),
    "ps": Command("instances", "List the instances of all applications in a state directory that answer queries."),
    "status": Command(
        "instances",
        "Show the state of each instance of an application, and its counters since the start.",
    ),
    "lag": Command("instances", "Show the lag of the stores of each instance behind their changelogs."),
    "init": Command(
        "init",
        "Create a project: application, test, configuration, container, and a topic with three lines to count.",
    ),
    "doctor": Command(
        "doctor",
        "Check Python, packages, Java, Spark, disk and file system; exit status 1 if a requirement is not met.",
    ),
    "topics": Command("topics", "Create, list, describe, alter and delete topics."),
    "groups": Command("groups", "Show consumer groups, move them, and delete them."),
    "schemas": Command("schemas", "List, show, register, check and delete schemas in a schema registry."),
    "quotas": Command("quotas", "Limit the bytes per second of client ids."),
    "parked": Command("parked", "Show parked records, retry them, and discard them."),
    "connectors": Command(
        "connectors",
        "Show the sources and sinks of an application, pause, resume and restart them; merge files of sinks.",
    ),
    "log": Command("log", "Show, check, repair and clean the files of the embedded log."),
    "state": Command("state", "Move the state of an application from one engine to another."),
}


class _Commands(TyperGroup):
    """The group of all commands. Its own commands are their summaries; the command that a user names is imported."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the name, the command and the other arguments."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, name and command_named(name), rest


def application() -> typer.Typer:
    """Return the Typer application with the summaries of all commands."""
    app = _typer(_Commands)
    app.callback()(_options)
    for name, command in COMMANDS.items():
        app.command(name, help=command.summary)(_no_options)
    return app


def command_named(name: str) -> Any:
    """Return a command, or a group of commands, as Typer builds it."""
    command = COMMANDS[name]
    app = _typer(TyperGroup)
    function_or_group = getattr(import_module(f"kstreams.cli.commands.{command.module}"), name)
    if isinstance(function_or_group, typer.Typer):
        app.add_typer(function_or_group, name=name, help=command.summary)
    else:
        app.command(name, cls=command.cls)(function_or_group)
    return typer.main.get_group(app).commands[name]


def _typer(cls: type[TyperGroup]) -> typer.Typer:
    return typer.Typer(
        cls=cls,
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Kafka Streams for Python, on a native engine and on Spark.",
    )


def _no_options() -> None:
    """Stand for a command in the list of all."""


def _show_version(show_version: bool) -> None:
    from importlib.metadata import version

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
