"""`LocalRegistry`: a schema registry in the catalogue of an embedded log, without a server."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from kstreams.errors import IncompatibleSchemaError, LogError, RegistryError, SchemaNotFoundError
from kstreams.log.embedded.catalogue import schema_rows
from kstreams.log.embedded.log import EmbeddedLog
from kstreams.log.naming import did_you_mean
from kstreams.schemas.canonical import canonical, guid_of
from kstreams.schemas.compatibility.rules import DEFAULT_RULE, check_schema, checked_rule, resolved_by, violations
from kstreams.schemas.registry import RegisteredSchema, Schema, SchemaRegistry
from kstreams.schemas.serialized_proto import is_serialized

_LONGEST_SUBJECT = 255


class LocalRegistry(SchemaRegistry):
    """Subjects, versions, ids, GUIDs and rules of compatibility in an embedded log.

    Ids behave as those of a Confluent server: one canonical text has one id in all subjects. Deleting takes two steps:
    a version that is deleted is no version any more, but its id stays; permanent deletion takes the id too.

    Parameters
    ----------
    log : EmbeddedLog
        Closed with the registry.

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
        """The schema of an id."""
        cached = self._by_id.get(number)
        if cached is None:
            with self._errors():
                cached = schema_rows.schema_of_id(self._catalogue, number)
            if cached is None:
                raise SchemaNotFoundError(f"there is no schema with the id {number} in {self}")
            self._by_id[number] = cached
        return cached

    def schema_of_guid(self, guid: str) -> RegisteredSchema:
        """The schema of a GUID."""
        cached = self._by_guid.get(guid)
        if cached is None:
            with self._errors():
                cached = schema_rows.schema_of_guid(self._catalogue, guid.lower())
            if cached is None:
                raise SchemaNotFoundError(f"there is no schema with the GUID {guid} in {self}")
            self._by_guid[guid] = cached
        return cached

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Make it the newest version of the subject, unless it is one already."""
        self._check_subject(subject)
        form = canonical(schema, normalize=normalize)
        with self._errors():
            existing = self._version_like(subject, form, normalize)
            if existing is not None:
                return existing
            check_schema(resolved_by(self, schema))
            self._check_compatible(subject, schema)  # compiles what the transaction, which keeps others out, compares
            with self._catalogue.write() as database:
                existing = self._version_like(subject, form, normalize)  # another process may have been faster
                if existing is not None:
                    return existing
                self._check_compatible(subject, schema)
                stored = Schema(_stored_text(schema, form), schema.type, form.references)
                return schema_rows.insert_version(database, subject, stored, guid_of(form))

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """The version of the subject that is this schema."""
        with self._errors():
            existing = self._version_like(subject, canonical(schema, normalize=normalize), normalize)
            if existing is None:
                self.versions(subject)  # says so where there is no such subject
                raise SchemaNotFoundError(f"no version of the subject {subject!r} in {self} is this schema")
            return existing

    def version(self, subject: str, version: int | Literal["latest"] = "latest") -> RegisteredSchema:
        """A version of a subject."""
        versions = self._versions(subject)
        if version == "latest":
            return versions[-1]
        for each in versions:
            if each.version == version:
                return each
        raise SchemaNotFoundError(
            f"the subject {subject!r} in {self} has no version {version}: there are "
            f"{', '.join(str(each.version) for each in versions)}"
        )

    def subjects(self) -> Sequence[str]:
        """All subjects, sorted."""
        with self._errors():
            return schema_rows.subjects_of(self._catalogue)

    def versions(self, subject: str) -> Sequence[int]:
        """The numbers of the versions of a subject, ascending."""
        return [each.version for each in self._versions(subject)]

    def incompatibilities(self, subject: str, schema: Schema) -> Sequence[str]:
        """Why the subject would not take a schema as its next version, in words; empty when it would."""
        with self._errors():
            check_schema(resolved_by(self, schema))
            return violations(self, subject, schema)

    def compatibility(self, subject: str | None = None) -> str:
        """The rule of a subject, or of all that have none of their own."""
        with self._errors():
            own = schema_rows.read_rule(self._catalogue, subject)
            return own or schema_rows.read_rule(self._catalogue, None) or DEFAULT_RULE

    def set_compatibility(self, rule: str, subject: str | None = None) -> None:
        """Change the rule of a subject, or of all that have none of their own."""
        name = checked_rule(rule)
        with self._errors(), self._catalogue.write() as database:
            schema_rows.store_rule(database, subject, name)

    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> Sequence[int]:
        """Delete a version or the whole subject; permanently only what is deleted already."""
        with self._errors(), self._catalogue.write() as database:
            chosen = self._chosen(subject, version, permanent)
            self._refuse_referenced(subject, chosen)
            if permanent:
                schema_rows.remove_versions(database, subject, chosen)
            else:
                schema_rows.mark_deleted(database, subject, chosen)
            if version is None:
                schema_rows.delete_rule(database, subject)
        if permanent:
            self._forget()
        return chosen

    def close(self) -> None:
        """Close the log."""
        self._log.close()

    def __repr__(self) -> str:
        return f"local:{self._catalogue.path.parent}"

    def _versions(self, subject: str) -> list[RegisteredSchema]:
        with self._errors():
            versions = schema_rows.versions_of(self._catalogue, subject)
            if not versions:
                hint = did_you_mean(subject, schema_rows.subjects_of(self._catalogue))
                raise SchemaNotFoundError(f"there is no subject {subject!r} in {self}.{hint}")
            return versions

    def _version_like(self, subject: str, form: Schema, normalize: bool) -> RegisteredSchema | None:
        """The newest version of a subject with this canonical form."""
        for each in reversed(schema_rows.versions_of(self._catalogue, subject)):
            if canonical(each.schema, normalize=normalize) == form or self._are_one_file(each.schema, form):
                return each
        return None

    def _are_one_file(self, schema: Schema, form: Schema) -> bool:
        """Whether both are the same `.proto`, once as its text and once as what a compiler made of it."""
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
        """The versions that are to be deleted."""
        states = schema_rows.version_states(self._catalogue, subject)
        chosen = {each: deleted for each, deleted in states.items() if version is None or each == version}
        if not permanent:
            chosen = {each: deleted for each, deleted in chosen.items() if not deleted}
        if not chosen:
            place = f"subject {subject!r}" if version is None else f"version {version} of the subject {subject!r}"
            raise SchemaNotFoundError(f"there is no {place} in {self}")
        alive = [str(each) for each, deleted in chosen.items() if permanent and not deleted]
        if alive:
            raise RegistryError(
                f"version {', '.join(alive)} of the subject {subject!r} in {self} is in use: delete it first, then "
                "permanently"
            )
        return list(chosen)

    def _refuse_referenced(self, subject: str, versions: Sequence[int]) -> None:
        users = schema_rows.referring(self._catalogue, subject, versions)
        if users:
            named = ", ".join(f"version {each.version} of {each.subject!r}" for each in users)
            raise RegistryError(f"the subject {subject!r} in {self} is referred to by {named}: delete that first")

    def _forget(self) -> None:
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
    """A `.proto` stays as its author wrote it, with comments; of other types the canonical text is kept."""
    return schema.text.strip() if schema.type == "PROTOBUF" else form.text
