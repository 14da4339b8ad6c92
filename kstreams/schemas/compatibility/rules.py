"""Compatibility rules of subjects: which earlier versions a new version is compared with, and in which direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

from kstreams.errors import ConfigError, RegistryError, SchemaNotFoundError
from kstreams.schemas.compatibility.incompatibility import Incompatibility
from kstreams.schemas.references import ResolvedSchema, resolved
from kstreams.schemas.registry import Schema, SchemaReference, SchemaRegistry

Compare = Callable[[ResolvedSchema, ResolvedSchema], Sequence[Incompatibility]]


class Rule(NamedTuple):
    """The comparisons that a rule requires.

    Parameters
    ----------
    reads_earlier : bool
        True if the new schema must read records of earlier schemas.
    read_by_earlier : bool
        True if earlier schemas must read records of the new schema.
    is_transitive : bool
        True if all earlier versions are compared, False if only the newest is.
    """

    reads_earlier: bool
    read_by_earlier: bool
    is_transitive: bool


RULES = {
    "BACKWARD": Rule(True, False, False),
    "BACKWARD_TRANSITIVE": Rule(True, False, True),
    "FORWARD": Rule(False, True, False),
    "FORWARD_TRANSITIVE": Rule(False, True, True),
    "FULL": Rule(True, True, False),
    "FULL_TRANSITIVE": Rule(True, True, True),
    "NONE": Rule(False, False, False),
}
DEFAULT_RULE = "BACKWARD"
_MODULES = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json_schema"}


def checked_rule(rule: str) -> str:
    """Return the name of a rule in capitals. Raises ConfigError if no rule has this name.

    Examples
    --------
    >>> checked_rule("full_transitive")
    'FULL_TRANSITIVE'
    """
    if rule.upper() not in RULES:
        raise ConfigError(f"{rule!r} is no rule of compatibility: there are {', '.join(RULES)}")
    return rule.upper()


def incompatibilities(reader: ResolvedSchema, writer: ResolvedSchema) -> Sequence[Incompatibility]:
    """Return the reasons why the reader cannot read records of the writer. Empty if it can.

    Raises
    ------
    RegistryError
        If a text is not a schema of its type.

    Examples
    --------
    >>> old, new = ResolvedSchema('"int"'), ResolvedSchema('"string"')
    >>> print(*incompatibilities(new, old))
    (root): int cannot be read as string
    """
    if reader.type != writer.type:
        return [Incompatibility("(root)", f"{writer.type} cannot be read as {reader.type}")]
    module = import_module(f"kstreams.schemas.compatibility.{_MODULES[reader.type]}")  # each needs an optional library
    compare: Compare = module.incompatibilities
    try:
        return compare(reader, writer)
    except RecursionError:
        raise RegistryError("these schemas are nested too deeply to be compared") from None


def check_schema(schema: ResolvedSchema) -> None:
    """Raise RegistryError if a text is not a schema of its type."""
    incompatibilities(schema, schema)


def violations(registry: SchemaRegistry, subject: str, schema: Schema) -> list[str]:
    """Return the reasons why the rule of a subject forbids a schema as its next version. Empty if it is allowed."""
    rule = RULES[registry.compatibility(subject)]
    candidate = resolved_by(registry, schema)
    reasons: list[str] = []
    for version in _versions_to_compare(registry, subject, rule):
        earlier = resolved_by(registry, registry.version(subject, version).schema)
        if rule.reads_earlier:
            reasons += (f"cannot read version {version}: {reason}" for reason in incompatibilities(candidate, earlier))
        if rule.read_by_earlier:
            reasons += (
                f"cannot be read by version {version}: {reason}" for reason in incompatibilities(earlier, candidate)
            )
    return reasons


def resolved_by(registry: SchemaRegistry, schema: Schema) -> ResolvedSchema:
    """Resolve the references of a schema in a registry."""

    def find(reference: SchemaReference) -> Schema:
        return registry.version(reference.subject, reference.version).schema

    return resolved(schema, find)


def _versions_to_compare(registry: SchemaRegistry, subject: str, rule: Rule) -> Sequence[int]:
    """Return the versions that a rule compares with, newest first."""
    if not (rule.reads_earlier or rule.read_by_earlier):
        return []
    try:
        versions = sorted(registry.versions(subject), reverse=True)
    except SchemaNotFoundError:
        return []
    return versions if rule.is_transitive else versions[:1]
