"""Schemas in files: their types by their names, and what they refer to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import typer

from kstreams.schemas import Schema, SchemaReference, SchemaRegistry, SchemaType

_TYPES: dict[str, SchemaType] = {".avsc": "AVRO", ".avro": "AVRO", ".proto": "PROTOBUF", ".json": "JSON"}


def schema_in(file: str, kind: str | None, references: Sequence[SchemaReference] = ()) -> Schema:
    """The schema in a file, or on standard input for `-`.

    Parameters
    ----------
    file : str
    kind : str or None
        Its type; that of the file's suffix unless given.
    references : sequence of SchemaReference
    """
    type_ = _type_of(file, kind)
    text = sys.stdin.read() if file == "-" else Path(file).read_text()
    return Schema(text, type_, tuple(references))


def references_of(texts: Sequence[str], registry: SchemaRegistry) -> list[SchemaReference]:
    """What `--reference NAME=SUBJECT` and `NAME=SUBJECT:VERSION` stand for; without a version, the newest."""
    return [_reference(text, registry) for text in texts]


def _type_of(file: str, kind: str | None) -> SchemaType:
    name = kind.upper() if kind else _TYPES.get(Path(file).suffix)
    for type_ in get_args(SchemaType):
        if name == type_:
            return type_  # type: ignore[no-any-return]
    raise typer.BadParameter(
        f"{kind or file!r} does not say what the schema is: name it avro, protobuf or json", param_hint="--type"
    )


def _reference(text: str, registry: SchemaRegistry) -> SchemaReference:
    name, equals, place = text.partition("=")
    subject, colon, version = place.rpartition(":")
    if not colon or not version.isdecimal():
        subject = place
        version = ""
    if not name or not equals or not subject:
        raise typer.BadParameter(f"{text!r} is not NAME=SUBJECT or NAME=SUBJECT:VERSION", param_hint="--reference")
    return SchemaReference(name, subject, int(version) if version else registry.version(subject).version)
