"""`kstreams topology`: prints the topology of an application."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from kstreams.cli.options import AppFile


class Format(StrEnum):
    """How a topology is printed."""

    TEXT = "text"
    MERMAID = "mermaid"
    JSON = "json"


def topology(
    app: AppFile,
    form: Annotated[Format, typer.Option("--format", "-f", help="Output format.")] = Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Print the topology: in the format of Kafka Streams, as a Mermaid flowchart, or as JSON.

    Example: `kstreams topology app.py --format mermaid > topology.mmd`
    """
    from kstreams.app import load_app
    from kstreams.cli.diagram import as_data, as_mermaid
    from kstreams.cli.output import json_line

    built = load_app(app).topology
    if as_json or form is Format.JSON:
        sys.stdout.write(json_line(as_data(built)))
    elif form is Format.MERMAID:
        sys.stdout.write(as_mermaid(built) + "\n")
    else:
        sys.stdout.write(built.describe().rstrip("\n") + "\n")
