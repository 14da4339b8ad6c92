"""`kstreams topology`: prints the topology of an application."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kstreams.cli.options import AppFile

if TYPE_CHECKING:
    from kstreams.processor.topology.topology import Topology


class Format(StrEnum):
    """The format of a topology."""

    TEXT = "text"
    MERMAID = "mermaid"
    JSON = "json"
    SVG = "svg"


def topology(
    app: AppFile,
    form: Annotated[Format, typer.Option("--format", "-f", help="Output format.")] = Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write; default: print it.")] = None,
) -> None:
    """Print the topology: in the format of Kafka Streams, as a Mermaid flowchart, as JSON, or as a picture (SVG).

    Examples: `kstreams topology app.py --format mermaid`, `kstreams topology app.py --format svg -o topology.svg`
    """
    from kstreams.app import load_app

    loaded = load_app(app)
    text = _FORMS[Format.JSON if as_json else form](loaded.topology, loaded.config.application_id)
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text, encoding="utf-8")


def _as_text(topology: Topology, name: str) -> str:
    return topology.describe().rstrip("\n") + "\n"


def _as_mermaid(topology: Topology, name: str) -> str:
    from kstreams.diagram.mermaid import as_mermaid

    return as_mermaid(topology) + "\n"


def _as_json(topology: Topology, name: str) -> str:
    from kstreams.cli.output import json_line
    from kstreams.diagram.data import as_data

    return json_line(as_data(topology))


def _as_svg(topology: Topology, name: str) -> str:
    from kstreams.diagram.svg import as_svg

    return as_svg(topology, f"Topology of {name}")


_FORMS: Mapping[Format, Callable[[Topology, str], str]] = {
    Format.TEXT: _as_text,
    Format.MERMAID: _as_mermaid,
    Format.JSON: _as_json,
    Format.SVG: _as_svg,
}
