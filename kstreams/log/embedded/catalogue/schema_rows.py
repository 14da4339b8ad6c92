"""Rows of schemas in the catalogue: texts by id, versions of subjects, and compatibility rules.

A version that is deleted keeps its row until it is deleted permanently; a schema stays as long as a version refers to
it. Version numbers are never reused.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from kstreams.kernel.decoders import decode_json
from kstreams.log.embedded.catalogue.catalogue import Catalogue, Rows, next_id
from kstreams.schemas.registry import RegisteredSchema, Schema, SchemaReference

_ALL = "SELECT id, guid, type, text, refs, subject, version FROM schemas JOIN schema_versions ON id = schema_id"
_WITHOUT_VERSION = "SELECT id, guid, type, text, refs, '', 0 FROM schemas"
_FOR_ALL = ""  # in place of a subject: the default rule


def schema_of_id(catalogue: Catalogue, number: int) -> RegisteredSchema | None:
    """Return the schema with an id, without subject and version."""
    return _first_registered(catalogue.read(f"{_WITHOUT_VERSION} WHERE id = ?", number))


def schema_of_guid(catalogue: Catalogue, guid: str) -> RegisteredSchema | None:
    """Return the schema with a GUID, without subject and version."""
    return _first_registered(catalogue.read(f"{_WITHOUT_VERSION} WHERE guid = ?", guid))


def versions_of(catalogue: Catalogue, subject: str) -> list[RegisteredSchema]:
    """Return the versions of a subject that are not deleted, ascending."""
    rows = catalogue.read(f"{_ALL} WHERE subject = ? AND deleted = 0 ORDER BY version", subject)
    return [_registered(row) for row in rows]


def subjects_of(catalogue: Catalogue) -> list[str]:
    """Return the subjects with a version that is not deleted, sorted."""
    rows = catalogue.read("SELECT DISTINCT subject FROM schema_versions WHERE deleted = 0 ORDER BY subject")
    return [subject for (subject,) in rows]


def version_states(catalogue: Catalogue, subject: str) -> dict[int, bool]:
    """Return all versions of a subject, and whether they are deleted."""
    rows = catalogue.read("SELECT version, deleted FROM schema_versions WHERE subject = ? ORDER BY version", subject)
    return {version: bool(deleted) for version, deleted in rows}


def referring(catalogue: Catalogue, subject: str, versions: Sequence[int]) -> list[RegisteredSchema]:
    """Return the versions, not deleted, whose schemas refer to one of these versions of a subject."""
    rows = catalogue.read(f"{_ALL} WHERE deleted = 0 AND refs != '[]' ORDER BY subject, version")
    return [
        version
        for version in map(_registered, rows)
        if any(
            reference.subject == subject and reference.version in versions for reference in version.schema.references
        )
    ]


def insert_version(database: sqlite3.Connection, subject: str, schema: Schema, guid: str) -> RegisteredSchema:
    """Add a schema as the newest version of a subject, in a transaction; it has the same id in all subjects."""
    row = database.execute("SELECT id FROM schemas WHERE guid = ?", (guid,)).fetchone()
    number = int(row[0]) if row else next_id(database, "schemas")
    if not row:
        references = msgspec.json.encode(schema.references).decode()
        database.execute(
            "INSERT INTO schemas VALUES (?, ?, ?, ?, ?)", (number, guid, schema.type, schema.text, references)
        )
    version = next_id(database, f"versions of {subject}")
    database.execute("INSERT INTO schema_versions VALUES (?, ?, ?, 0)", (subject, version, number))
    return RegisteredSchema(number, guid, schema, subject, version)


def mark_deleted(database: sqlite3.Connection, subject: str, versions: Sequence[int]) -> None:
    """Mark versions of a subject as deleted, in a transaction."""
    database.executemany(
        "UPDATE schema_versions SET deleted = 1 WHERE subject = ? AND version = ?",
        [(subject, version) for version in versions],
    )


def remove_versions(database: sqlite3.Connection, subject: str, versions: Sequence[int]) -> None:
    """Remove versions of a subject, and schemas that no other version refers to, in a transaction."""
    database.executemany(
        "DELETE FROM schema_versions WHERE subject = ? AND version = ?", [(subject, version) for version in versions]
    )
    database.execute("DELETE FROM schemas WHERE id NOT IN (SELECT schema_id FROM schema_versions)")


def read_rule(catalogue: Catalogue, subject: str | None) -> str | None:
    """Return the rule of a subject, or the default rule (subject None); None if it was not set."""
    rows = catalogue.read("SELECT rule FROM schema_rules WHERE subject = ?", subject or _FOR_ALL)
    return str(rows[0][0]) if rows else None


def store_rule(database: sqlite3.Connection, subject: str | None, rule: str) -> None:
    """Set the rule of a subject, or the default rule (subject None), in a transaction."""
    sql = "INSERT INTO schema_rules VALUES (?, ?) ON CONFLICT (subject) DO UPDATE SET rule = excluded.rule"
    database.execute(sql, (subject or _FOR_ALL, rule))


def delete_rule(database: sqlite3.Connection, subject: str) -> None:
    """Remove the rule of a subject, in a transaction."""
    database.execute("DELETE FROM schema_rules WHERE subject = ?", (subject,))


def _first_registered(rows: Rows) -> RegisteredSchema | None:
    return _registered(rows[0]) if rows else None


def _registered(row: tuple[int, str, str, str, str, str, int]) -> RegisteredSchema:
    number, guid, kind, text, references, subject, version = row
    named = tuple(decode_json(references, list[SchemaReference]))
    return RegisteredSchema(number, guid, Schema(text, kind, named), subject, version)  # type: ignore[arg-type]
