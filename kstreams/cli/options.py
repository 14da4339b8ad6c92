"""Arguments and options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from kstreams.errors import SerdeError


class EngineName(StrEnum):
    """The engine that runs a topology."""

    NATIVE = "native"
    SPARK = "spark"


KINDS: Final = (
    "`str`, `int`, `float`, `bool`, `json`, `bytes` (as base64), `hex`, `raw`, `datetime`, `uuid`, "
    "`windowed(str, SIZE_MS)`, `session(str)`, `avro`, `protobuf` or `json-schema` (by the schema registry), or `auto` "
    "(a guess)"
)

AppFile = Annotated[
    str,
    typer.Argument(
        metavar="APP",
        help="The application: its file (`app.py`, `pkg/app.py`) or module (`pkg.app`); `app.py:name` if its "
        "variable is not called `topology`; or a connect file (`trades.toml`).",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
LogDir = Annotated[
    Path | None,
    typer.Option(
        "--log-dir", help="Folder of the embedded log; default: `log.dir` of the configuration, else `.kstreams/log`."
    ),
]
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--config", "-c", metavar="KEY=VALUE", help="A setting; may be repeated."),
]


def _kind(name: str | None) -> str | None:
    from kstreams.serdes.byte_kinds import checked_kind

    try:
        return name if name is None else checked_kind(name)
    except SerdeError as error:
        raise typer.BadParameter(str(error)) from None


KeyType = Annotated[
    str | None,
    typer.Option("--key-type", metavar="TYPE", callback=_kind, help="The same for keys."),
]
ConsumedKeyType = Annotated[
    str | None,
    typer.Option("--key-type", "--key", metavar="TYPE", callback=_kind, help="The same for keys."),
]
ValueType = Annotated[
    str | None,
    typer.Option(
        "--value-type", "--value", metavar="TYPE", callback=_kind,
        help=f"Type of values: {KINDS}; default: the type in the settings of the topic.",
    ),
]  # fmt: skip


def _named_type(name: str | None) -> str | None:
    from kstreams.serdes import serde_named, type_name

    try:
        return None if name is None else type_name(serde_named({"text": "str"}.get(name, name)))
    except SerdeError as error:
        raise typer.BadParameter(str(error)) from None


NotedKeyType = Annotated[
    str | None, typer.Option("--key-type", metavar="TYPE", callback=_named_type, help="The same for keys.")
]
NotedValueType = Annotated[
    str | None,
    typer.Option(
        "--value-type", metavar="TYPE", callback=_named_type,
        help="Type of values: `str`, `int`, `float`, `bool`, `json`, `bytes`, `datetime`, `uuid`, `avro`, `protobuf`, "
        "`json-schema`.",
    ),
]  # fmt: skip


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
