"""`kstreams schemas`: shows and changes the schemas of a registry, which is a server or the embedded log."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, get_args

import typer

from kstreams.cli.options import AsJson, LogDir
from kstreams.cli.output import json_line, print_rows
from kstreams.cli.registry import RegistryUrl, open_registry
from kstreams.errors import SchemaNotFoundError
from kstreams.schemas import RegisteredSchema, Schema, SchemaReference, SchemaRegistry, SchemaType
from kstreams.schemas.serialized_proto import deserialized, is_serialized

_TYPES: dict[str, SchemaType] = {".avsc": "AVRO", ".avro": "AVRO", ".proto": "PROTOBUF", ".json": "JSON"}


def schema_in(file: str, kind: str | None, references: Sequence[SchemaReference] = ()) -> Schema:
    """Return the schema in a file, or on standard input for `-`.

    Parameters
    ----------
    file : str
    kind : str or None
        Its type. Default: by the suffix of the file.
    references : sequence of SchemaReference
    """
    type_ = _type_of(file, kind)
    text = sys.stdin.read() if file == "-" else Path(file).read_text()
    return Schema(text, type_, tuple(references))


def references_of(texts: Sequence[str], registry: SchemaRegistry) -> list[SchemaReference]:
    """Return the references of `--reference NAME=SUBJECT:VERSION`. The default is the newest version."""
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
    name, equals, target = text.partition("=")
    subject, colon, version = target.rpartition(":")
    if not colon or not version.isdecimal():
        subject = target
        version = ""
    if not name or not equals or not subject:
        raise typer.BadParameter(f"{text!r} is not NAME=SUBJECT or NAME=SUBJECT:VERSION", param_hint="--reference")
    return SchemaReference(name, subject, int(version) if version else registry.version(subject).version)


schemas = typer.Typer(no_args_is_help=True)
Subject = Annotated[
    str,
    typer.Argument(metavar="SUBJECT", help="Name of the subject: `orders-value` for the values of the topic orders."),
]
SchemaFile = Annotated[str, typer.Argument(metavar="FILE", help="`.avsc`, `.proto` or `.json`; `-`: standard input.")]
SchemaKind = Annotated[
    str | None,
    typer.Option("--type", metavar="TYPE", help="`avro`, `protobuf` or `json`; default: by the name of the file."),
]
References = Annotated[
    list[str] | None,
    typer.Option(
        "--reference",
        metavar="NAME=SUBJECT:VERSION",
        help="The schema that a name in the schema refers to; default: its newest version; may be repeated.",
    ),
]
Normalize = Annotated[bool, typer.Option("--normalize", help="Compare schemas in their normal form.")]


@schemas.command("list")
def list_(as_json: AsJson = False, registry: RegistryUrl = None, log_dir: LogDir = None) -> None:
    """List the subjects with their newest versions and their rules of compatibility.

    Examples: `kstreams schemas list`, `kstreams schemas list --registry http://localhost:8081 --json`
    """
    with open_registry(registry, log_dir) as opened:
        print_rows(_subjects(opened), as_json=as_json, title="Schemas")


@schemas.command()
def show(
    subject: Annotated[str | None, typer.Argument(metavar="[SUBJECT]", help="Name of the subject.")] = None,
    version: Annotated[
        int | None, typer.Option("--version", min=1, help="Version of the subject; default: the newest.")
    ] = None,
    number: Annotated[int | None, typer.Option("--id", help="The schema with this id, in place of a subject.")] = None,
    guid: Annotated[str | None, typer.Option("--guid", help="The schema with this GUID.")] = None,
    as_json: AsJson = False,
    registry: RegistryUrl = None,
    log_dir: LogDir = None,
) -> None:
    """Print a schema: a version of a subject, or the schema with an id or a GUID.

    With `--json`, the text with id, GUID, type and references.

    Examples: `kstreams schemas show orders-value`, `kstreams schemas show orders-value --version 1 > order.avsc`,
    `kstreams schemas show --id 17 --json`
    """
    if sum(selector is not None for selector in (subject, number, guid)) != 1:
        raise typer.BadParameter("name one of a subject, an id, or a GUID", param_hint="SUBJECT, --id or --guid")
    with open_registry(registry, log_dir) as opened:
        if subject is not None:
            registered = opened.version(subject, "latest" if version is None else version)
        else:
            registered = opened.schema(number) if number is not None else opened.schema_of_guid(guid or "")
    sys.stdout.write(json_line(_described(registered)) if as_json else f"{_readable(registered.schema)}\n")


@schemas.command()
def register(
    subject: Subject,
    file: SchemaFile,
    kind: SchemaKind = None,
    reference: References = None,
    normalize: Normalize = False,
    as_json: AsJson = False,
    registry: RegistryUrl = None,
    log_dir: LogDir = None,
) -> None:
    """Register a schema as the newest version of a subject, unless it is a version already.

    Examples: `kstreams schemas register orders-value order.avsc`,
    `kstreams schemas register orders-value order.proto --reference shop/item.proto=item`
    """
    with open_registry(registry, log_dir, create=True) as opened:
        schema = schema_in(file, kind, references_of(reference or (), opened))
        registered = opened.register(subject, schema, normalize=normalize)
    print_rows([_summary(registered)], as_json=as_json)


@schemas.command()
def check(
    subject: Subject,
    file: SchemaFile,
    kind: SchemaKind = None,
    reference: References = None,
    as_json: AsJson = False,
    registry: RegistryUrl = None,
    log_dir: LogDir = None,
) -> None:
    """Check whether a schema could be the next version of a subject, by the subject's rule of compatibility.

    If not, the command prints every reason with its position in the schema, and the exit status is 1.

    Example: `kstreams schemas check orders-value order.avsc`
    """
    with open_registry(registry, log_dir) as opened:
        schema = schema_in(file, kind, references_of(reference or (), opened))
        reasons = opened.incompatibilities(subject, schema)
        rule = opened.compatibility(subject)
    print_rows(({"subject": subject, "reason": reason} for reason in reasons), as_json=as_json)
    verdict = "is not compatible" if reasons else "is compatible"
    typer.echo(f"the schema {verdict} with {subject} ({rule})", err=True)
    if reasons:
        raise typer.Exit(1)


@schemas.command()
def compatibility(
    rule: Annotated[
        str | None,
        typer.Argument(
            metavar="[RULE]",
            help="`BACKWARD`, `FORWARD` or `FULL`, each also with `_TRANSITIVE`, or `NONE`; default: only show it.",
        ),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option("--subject", metavar="SUBJECT", help="The rule of this subject; default: the rule of all others."),
    ] = None,
    registry: RegistryUrl = None,
    log_dir: LogDir = None,
) -> None:
    """Show or set the rule of compatibility of a subject, or of all subjects that have none of their own.

    Examples: `kstreams schemas compatibility`, `kstreams schemas compatibility FULL --subject orders-value`
    """
    with open_registry(registry, log_dir, create=rule is not None) as opened:
        if rule is not None:
            opened.set_compatibility(rule, subject)
        typer.echo(opened.compatibility(subject))


@schemas.command()
def delete(
    subject: Subject,
    version: Annotated[
        int | None,
        typer.Option("--version", min=1, help="Only this version; default: all versions and the rule of the subject."),
    ] = None,
    permanent: Annotated[
        bool, typer.Option("--permanent", help="Permanently: records with this schema cannot be read any more.")
    ] = False,
    registry: RegistryUrl = None,
    log_dir: LogDir = None,
) -> None:
    """Delete a subject or one of its versions. Records can still be read by its ids, unless it is deleted permanently.

    Examples: `kstreams schemas delete orders-value --version 1`, `kstreams schemas delete orders-value --permanent`
    """
    with open_registry(registry, log_dir) as opened:
        deleted = _delete(opened, subject, version, permanent)
    numbers = ", ".join(map(str, deleted))
    typer.echo(f"deleted version {numbers} of {subject}{' permanently' if permanent else ''}", err=True)


def _delete(registry: SchemaRegistry, subject: str, version: int | None, permanent: bool) -> list[int]:
    """Delete in two steps, which registries require for a permanent deletion."""
    if not permanent:
        return list(registry.delete(subject, version))
    with suppress(SchemaNotFoundError):  # it may be deleted already, but not permanently
        registry.delete(subject, version)
    return list(registry.delete(subject, version, permanent=True))


def _subjects(registry: SchemaRegistry) -> Iterator[dict[str, object]]:
    for subject in registry.subjects():
        newest = registry.version(subject)
        versions = registry.versions(subject)
        yield _summary(newest) | {"versions": list(versions), "compatibility": registry.compatibility(subject)}


def _summary(registered: RegisteredSchema) -> dict[str, object]:
    return {
        "subject": registered.subject,
        "version": registered.version,
        "id": registered.id,
        "type": registered.schema.type,
    }


def _described(registered: RegisteredSchema) -> dict[str, object]:
    """Return the description of a schema, which has no subject and no version if it was read by its id."""
    summary = {name: value for name, value in _summary(registered).items() if value not in ("", 0)}
    references = [
        {"name": reference.name, "subject": reference.subject, "version": reference.version}
        for reference in registered.schema.references
    ]
    guid = {"guid": registered.guid} if registered.guid else {}
    return summary | guid | {"references": references, "schema": registered.schema.text}


def _proto_of(text: str) -> str:
    """Return the text of a serialized `.proto` file."""
    from kstreams.schemas.proto_text import proto_text  # needs protobuf

    return proto_text(deserialized(text, "schema.proto"))


def _readable(schema: Schema) -> str:
    """Return the text of a schema with line breaks. The text of a `.proto` file is not changed."""
    if schema.type == "PROTOBUF":
        return _proto_of(schema.text) if is_serialized(schema.text) else schema.text.rstrip()
    try:
        return json.dumps(json.loads(schema.text), indent=2, ensure_ascii=False)
    except ValueError:
        return schema.text
