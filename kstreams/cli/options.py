"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AppFile = Annotated[
    str,
    typer.Argument(metavar="APP", help="The application: `app.py`, or `app.py:name` when it is not called `topology`."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
LogDir = Annotated[
    Path | None,
    typer.Option(
        "--log-dir", help="Folder of the embedded log; default: `log.dir` of the configuration, else `.kstreams/log`."
    ),
]
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--config", "-c", metavar="KEY=VALUE", help="A setting; may be given more than once."),
]


def settings_of(pairs: list[str] | None) -> dict[str, str]:
    """`KEY=VALUE` texts as a mapping.

    Examples
    --------
    >>> settings_of(["num.stream.threads=2"])
    {'num.stream.threads': '2'}
    """
    settings = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint="--config")
        settings[key] = value
    return settings
