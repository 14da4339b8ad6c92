"""`LocalRegistry`: a schema registry in the catalogue of an embedded log, which needs no server.

The catalogue has texts by id, versions of subjects, and compatibility rules. A version that is deleted keeps its row
until it is deleted permanently; a schema stays as long as a version refers to it. Version numbers are never reused.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import msgspec

from kstreams.errors import IncompatibleSchemaError, LogError, RegistryError, SchemaNotFoundError
from kstreams.kernel.decoders import decode_json
from kstreams.log.embedded.catalogue.catalogue import Catalogue, Rows, next_id
from kstreams.log.embedded.log import EmbeddedLog
from kstreams.log.naming import did_you_mean
from kstreams.schemas.canonical import canonical, guid_of
from kstreams.schemas.compatibility.rules import DEFAULT_RULE, check_schema, checked_rule, resolved_by, violations
from kstreams.schemas.registry import RegisteredSchema, Schema, SchemaReference, SchemaRegistry
from kstreams.schemas.serialized_proto import is_serialized

_LONGEST_SUBJECT = 255


class LocalRegistry(SchemaRegistry):
    """Subjects, versions, ids, GUIDs and compatibility rules in an embedded log.

    Ids behave as those of a Confluent server: one canonical text has the same id in all subjects. Deletion takes two
    steps: a deleted version is no longer found, but its id still is; permanent deletion removes the id too.

    Parameters
    ----------
    log : EmbeddedLog
        The registry closes it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> registry = LocalRegistry(EmbeddedLog(Path(tempfile.mkdtemp())))
    >>> first = registry.register("orders-value", Schema('{"type": "string"}'))
    >>> first.id, first.version, first.schema.text
    (1, 1, '"string"')
    >>> registry.register("payments-value", Schema('"string"')).id
    1
    >>> registry.incompatibilities("orders-value", Schema('"int"'))
    ['cannot read version 1: (root): string cannot be read as int']
    >>> registry.close()
    """

    def __init__(self, log: EmbeddedLog) -> None:
        self._log = log
        self._catalogue = log.catalogue
        self._mutex = threading.Lock()
        self._by_id: dict[int, RegisteredSchema] = {}
        self._by_guid: dict[str, RegisteredSchema] = {}

    def schema(self, number: int) -> RegisteredSchema:
        """Return the schema with an id."""
        cached = self._by_id.get(number)
        if cached is None:
            with self._errors():
                cached = _schema_of_id(self._catalogue, number)
            if cached is None:
                raise SchemaNotFoundError(f"there is no schema with the id {number} in {self}")
            self._by_id[number] = cached
        return cached

    def schema_of_guid(self, guid: str) -> RegisteredSchema:
        """Return the schema with a GUID."""
        cached = self._by_guid.get(guid)
        if cached is None:
            with self._errors():
                cached = _schema_of_guid(self._catalogue, guid.lower())
            if cached is None:
                raise SchemaNotFoundError(f"there is no schema with the GUID {guid} in {self}")
            self._by_guid[guid] = cached
        return cached

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Add a schema as the newest version of a subject, unless the subject has it already."""
        self._check_subject(subject)
        form = canonical(schema, normalize=normalize)
        with self._errors():
            existing = self._version_like(subject, form, normalize)
            if existing is not None:
                return existing
            check_schema(resolved_by(self, schema))
            self._check_compatible(
                subject, schema
            )  # compiles the schemas before the transaction, which blocks other processes
            with self._catalogue.write() as database:
                existing = self._version_like(
                    subject, form, normalize
                )  # another process may have registered it meanwhile
                if existing is not None:
                    return existing
                self._check_compatible(subject, schema)
                stored = Schema(_stored_text(schema, form), schema.type, form.references)
                return insert_version(database, subject, stored, guid_of(form))

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Return the version of the subject that has this schema."""
        with self._errors():
            existing = self._version_like(subject, canonical(schema, normalize=normalize), normalize)
            if existing is None:
                self.versions(subject)  # raises if the subject does not exist
                raise SchemaNotFoundError(f"no version of the subject {subject!r} in {self} is this schema")
            return existing

    def version(self, subject: str, version: int | Literal["latest"] = "latest") -> RegisteredSchema:
        """Return a version of a subject."""
        versions = self._versions(subject)
        if version == "latest":
            return versions[-1]
        for registered in versions:
            if registered.version == version:
                return registered
        raise SchemaNotFoundError(
            f"the subject {subject!r} in {self} has no version {version}: there are "
            f"{', '.join(str(registered.version) for registered in versions)}"
        )

    def subjects(self) -> Sequence[str]:
        """Return all subjects, sorted."""
        with self._errors():
            return subjects_of(self._catalogue)

    def versions(self, subject: str) -> Sequence[int]:
        """Return the version numbers of a subject, ascending."""
        return [registered.version for registered in self._versions(subject)]

    def incompatibilities(self, subject: str, schema: Schema) -> Sequence[str]:
        """Return the reasons why a subject refuses a schema as its next version; empty if it takes it."""
        with self._errors():
            check_schema(resolved_by(self, schema))
            return violations(self, subject, schema)

    def compatibility(self, subject: str | None = None) -> str:
        """Return the rule of a subject, or the default rule."""
        with self._errors():
            own = read_rule(self._catalogue, subject)
            return own or read_rule(self._catalogue, None) or DEFAULT_RULE

    def set_compatibility(self, rule: str, subject: str | None = None) -> None:
        """Change the rule of a subject, or the default rule."""
        name = checked_rule(rule)
        with self._errors(), self._catalogue.write() as database:
            store_rule(database, subject, name)

    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> Sequence[int]:
        """Delete a version or the whole subject; permanently only after it was deleted."""
        with self._errors(), self._catalogue.write() as database:
            chosen = self._chosen(subject, version, permanent)
            self._refuse_referenced(subject, chosen)
            if permanent:
                remove_versions(database, subject, chosen)
            else:
                mark_deleted(database, subject, chosen)
            if version is None:
                delete_rule(database, subject)
        if permanent:
            self._clear_caches()
        return chosen

    def close(self) -> None:
        """Close the log."""
        self._log.close()

    def __repr__(self) -> str:
        return f"local:{self._catalogue.path.parent}"

    def _versions(self, subject: str) -> list[RegisteredSchema]:
        with self._errors():
            versions = versions_of(self._catalogue, subject)
            if not versions:
                hint = did_you_mean(subject, subjects_of(self._catalogue))
                raise SchemaNotFoundError(f"there is no subject {subject!r} in {self}.{hint}")
            return versions

    def _version_like(self, subject: str, form: Schema, normalize: bool) -> RegisteredSchema | None:
        """Return the newest version of a subject with this canonical form, if there is one."""
        for registered in reversed(versions_of(self._catalogue, subject)):
            schema = registered.schema
            if canonical(schema, normalize=normalize) == form or self._are_one_file(schema, form):
                return registered
        return None

    def _are_one_file(self, schema: Schema, form: Schema) -> bool:
        """Return whether both are the same `.proto` file, one as text and one as a compiled descriptor."""
        if {schema.type, form.type} != {"PROTOBUF"} or schema.references != form.references:
            return False
        if is_serialized(schema.text) == is_serialized(form.text):
            return False
        from kstreams.schemas.proto_files import is_same_file  # needs protobuf

        return is_same_file(resolved_by(self, schema), resolved_by(self, form))

    def _check_subject(self, subject: str) -> None:
        if not 1 <= len(subject) <= _LONGEST_SUBJECT or not subject.isprintable():
            raise RegistryError(
                f"a subject has 1 to {_LONGEST_SUBJECT} characters that can be printed, not {subject!r}"
            )

    def _check_compatible(self, subject: str, schema: Schema) -> None:
        reasons = violations(self, subject, schema)
        if reasons:
            raise IncompatibleSchemaError(
                f"the subject {subject!r} in {self} has the rule {self.compatibility(subject)}, and this schema breaks "
                f"it: {'; '.join(reasons)}"
            )

    def _chosen(self, subject: str, version: int | None, permanent: bool) -> list[int]:
        """Return the versions to delete."""
        states = version_states(self._catalogue, subject)
        chosen = {number: deleted for number, deleted in states.items() if version is None or number == version}
        if not permanent:
            chosen = {number: deleted for number, deleted in chosen.items() if not deleted}
        if not chosen:
            place = f"subject {subject!r}" if version is None else f"version {version} of the subject {subject!r}"
            raise SchemaNotFoundError(f"there is no {place} in {self}")
        not_deleted = [str(number) for number, deleted in chosen.items() if permanent and not deleted]
        if not_deleted:
            raise RegistryError(
                f"version {', '.join(not_deleted)} of the subject {subject!r} in {self} is in use: delete it first, "
                "then permanently"
            )
        return list(chosen)

    def _refuse_referenced(self, subject: str, versions: Sequence[int]) -> None:
        users = referring(self._catalogue, subject, versions)
        if users:
            named = ", ".join(f"version {user.version} of {user.subject!r}" for user in users)
            raise RegistryError(f"the subject {subject!r} in {self} is referred to by {named}: delete that first")

    def _clear_caches(self) -> None:
        with self._mutex:
            self._by_id.clear()
            self._by_guid.clear()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except LogError as error:
            raise RegistryError(f"the schema registry {self} cannot be used: {error}") from error


def _stored_text(schema: Schema, form: Schema) -> str:
    """Return the text to store: a `.proto` as its author wrote it, with comments; other types in canonical form."""
    return schema.text.strip() if schema.type == "PROTOBUF" else form.text


_ALL = "SELECT id, guid, type, text, refs, subject, version FROM schemas JOIN schema_versions ON id = schema_id"
_WITHOUT_VERSION = "SELECT id, guid, type, text, refs, '', 0 FROM schemas"
_FOR_ALL = ""  # in place of a subject: the default rule


def _schema_of_id(catalogue: Catalogue, number: int) -> RegisteredSchema | None:
    """Return the schema with an id, without subject and version."""
    return _first_registered(catalogue.read(f"{_WITHOUT_VERSION} WHERE id = ?", number))


def _schema_of_guid(catalogue: Catalogue, guid: str) -> RegisteredSchema | None:
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
