"""`TopicSchemas`: the readers and writers of the keys or values of one topic, created on first use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, NoReturn, Protocol

from kstreams.errors import RegistryError, SchemaNotFoundError, SerdeError
from kstreams.schemas import RegisteredSchema, Schema, SchemaReference, SchemaRegistry, SchemaType
from kstreams.schemas.compatibility.rules import incompatibilities, resolved_by
from kstreams.serdes.base import SerdeUse
from kstreams.serdes.schemas.codecs import SchemaReader, SchemaWriter, UnreadableSchemaError
from kstreams.serdes.schemas.frame import frame_of_guid, frame_of_id, schema_in_words, schema_of_frame
from kstreams.serdes.schemas.options import SchemaOptions, WriterSettings


class SchemaFormat(ABC):
    """The declared schema of a serde, and the factories of readers and writers in one format."""

    schema_type: ClassVar[SchemaType]
    options: SchemaOptions

    @abstractmethod
    def declared_schema(self) -> Schema | None:
        """Return the declared schema of values. None if the user declared no schema."""

    def references_to_imports(self, registry: SchemaRegistry, *, register: bool) -> tuple[SchemaReference, ...]:
        """Return references to the schemas that the declared schema imports. `register=True` registers them."""
        return ()

    @abstractmethod
    def record_name(self, schema: Schema) -> str:
        """Return the full name of the record of a schema, which may be part of its subject."""

    @abstractmethod
    def reader_of(self, written: RegisteredSchema, registry: SchemaRegistry, start: int) -> SchemaReader:
        """Return a reader of the records of a schema. The first `start` bytes of a record are the frame.

        Raises
        ------
        SerdeError
            If no record of this schema can be read as the declared type.
        """

    @abstractmethod
    def writer_of(self, registered: RegisteredSchema, registry: SchemaRegistry, frame: bytes) -> SchemaWriter:
        """Return a writer of records with a schema. The records begin with `frame`."""

    def write_incompatibilities(
        self, selected: RegisteredSchema, declared: Schema, registry: SchemaRegistry
    ) -> Sequence[str]:
        """Return the reasons why a schema cannot read records of the declared schema."""
        reasons = incompatibilities(resolved_by(registry, selected.schema), resolved_by(registry, declared))
        return list(map(str, reasons))


class RegistrationPreview(NamedTuple):
    """The consequences of a first write with a schema.

    Parameters
    ----------
    subject : str
        The subject where the schema would be registered, or `schema id N` for a schema that is selected by its id.
    is_new : bool
        True if the schema would become a new version of the subject.
    reasons : sequence of str
        The reasons why nothing can be written. Empty if records can be written.
    """

    subject: str
    is_new: bool
    reasons: Sequence[str] = ()


class Schemas(Protocol):
    """The readers and the writer of a serde."""

    is_in_header: bool
    is_key: bool

    def reader(self, frame: bytes) -> SchemaReader:
        """Return the reader of records with this frame."""
        ...

    def writer(self) -> SchemaWriter:
        """Return the writer."""
        ...

    def preview(self) -> RegistrationPreview:
        """Return the consequences of a first write. No schema is registered."""
        ...

    def portable_use(self) -> SerdeUse | None:
        """Return the use in a form that can be sent to another process. None if the serde is bound to no topic."""
        ...


class NoSchemas:
    """The schemas of a serde that is not bound to a topic: every method raises an error."""

    is_in_header = False
    is_key = False

    def __init__(self, serde: SchemaFormat) -> None:
        self._serde = serde

    def reader(self, frame: bytes) -> SchemaReader:
        raise self._error()

    def writer(self) -> SchemaWriter:
        raise self._error()

    def preview(self) -> RegistrationPreview:
        raise self._error()

    def portable_use(self) -> SerdeUse | None:
        return None

    def _error(self) -> SerdeError:
        return SerdeError(
            f"{self._serde!r} reads and writes with the schema registry of an application: give it to a topic, a store "
            "or a topic of the test driver, and set schema.registry.url (`local:` needs no server)"
        )


def _refusing_reader(reason: str) -> SchemaReader:
    def fail(data: object) -> NoReturn:
        raise SerdeError(reason)

    return SchemaReader(fail, fail)


class TopicSchemas:
    """The schemas of a serde that is bound to a topic.

    Parameters
    ----------
    serde : SchemaFormat
        Creates readers and writers.
    use : SerdeUse
    """

    def __init__(self, serde: SchemaFormat, use: SerdeUse) -> None:
        self._serde = serde
        self._use = use
        self.is_key = use.is_key
        self._settings = WriterSettings.of(serde.options, use.config, is_key=use.is_key)
        self.is_in_header = self._settings.is_in_header
        self._readers: dict[bytes, SchemaReader] = {}
        self._writers: dict[int, SchemaWriter] = {}
        self._writer: SchemaWriter | None = None
        self._follows_latest = self._settings.use_latest_version and use.config.get("latest.cache.ttl.sec", -1) >= 0

    def reader(self, frame: bytes) -> SchemaReader:
        reader = self._readers.get(frame)
        return self._new_reader(frame) if reader is None else reader

    def writer(self) -> SchemaWriter:
        """Return the first selected writer, or the writer of the newest version if `latest.cache.ttl.sec` is set."""
        if self._writer is not None and not self._follows_latest:
            return self._writer
        try:
            registered = self._schema_to_write()
        except RegistryError:
            if self._writer is None:
                raise
            return self._writer  # while the registry is unavailable, the last version is used
        self._writer = self._writers.get(registered.id) or self._new_writer(registered)
        return self._writer

    def _new_reader(self, frame: bytes) -> SchemaReader:
        registry = self._use.registry()
        try:
            written = schema_of_frame(frame, registry)
        except SchemaNotFoundError as error:
            raise SerdeError(f"the schema registry has no {schema_in_words(frame)}: {error}") from error
        if written.schema.type != self._serde.schema_type:
            raise SerdeError(
                f"{schema_in_words(frame)} is of type {written.schema.type}, which {self._serde!r} does not read"
            )
        reader = self._readers[frame] = self._reader_or_refusal(written, len(frame))
        return reader

    def _reader_or_refusal(self, written: RegisteredSchema, start: int) -> SchemaReader:
        """Return the reader of a schema. If the schema cannot be read, its reader raises the reason for each record."""
        try:
            reader = self._serde.reader_of(written, self._use.registry(), start)
        except SerdeError as error:
            return _refusing_reader(f"{error}{self._declared_in_words()}")
        one = self._with_schema_ids(reader.one, written)
        many = self._with_schema_ids(reader.many, written)
        return SchemaReader(one, many, reader.fields)

    def _with_schema_ids(self, read: Callable[[Any], Any], written: RegisteredSchema) -> Callable[[Any], Any]:
        """Wrap a function that reads, so that its errors name the writer's and the reader's schema."""

        def read_or_explain(data: object) -> Any:
            try:
                return read(data)
            except UnreadableSchemaError as error:
                reason = f"schema id {written.id} cannot be read as {self._serde!r}: {error}{self._declared_in_words()}"
                raise SerdeError(reason) from error

        return read_or_explain

    def _declared_in_words(self) -> str:
        """Describe the declared schema by its id. Empty if no schema is declared or the registry does not answer."""
        declared = self._serde.declared_schema()
        if declared is None:
            return ""
        subject = self._subject(declared)
        try:
            schema = self._with_imports(declared, register=False)
            return f" (as schema id {self._use.registry().lookup(subject, schema).id})"
        except SchemaNotFoundError:
            return f" (which {subject} does not have)"
        except RegistryError:
            return ""

    def _new_writer(self, registered: RegisteredSchema) -> SchemaWriter:
        if self.is_in_header and not registered.guid:
            raise SerdeError(
                f"the schema registry tells no GUID of schema id {registered.id}, which would go into a header: write "
                "ids instead, with schema_id='prefix'"
            )
        frame = frame_of_guid(registered.guid) if self.is_in_header else frame_of_id(registered.id)
        writer = self._writers[registered.id] = self._serde.writer_of(registered, self._use.registry(), frame)
        return writer

    def _schema_to_write(self) -> RegisteredSchema:
        """Return the schema to write with, selected as Confluent's serializers do."""
        settings = self._settings
        registry = self._use.registry()
        declared = self._serde.declared_schema()
        if settings.use_schema_id is not None:
            return self._require_compatible(
                registry.schema(settings.use_schema_id), declared, "id.compatibility.strict"
            )
        subject = self._subject(declared)
        if settings.use_latest_version:
            return self._require_compatible(registry.version(subject), declared, "latest.compatibility.strict")
        if declared is None:
            raise SerdeError(
                f"{self._serde!r} has no schema to write topic {self._use.topic} with: name a class or a schema, as in "
                "ks.Avro(Order), or set use.latest.version"
            )
        schema = self._with_imports(declared, register=settings.auto_register)
        register_or_look_up = registry.register if settings.auto_register else registry.lookup
        registered = register_or_look_up(subject, schema, normalize=settings.normalize)
        return replace(registered, schema=schema)  # a registry may return another form of the same schema

    def _subject(self, declared: Schema | None) -> str:
        record = "" if declared is None else self._serde.record_name(declared)
        return self._settings.subject(self._use.topic, self._use.is_key, record)

    def _with_imports(self, declared: Schema, *, register: bool) -> Schema:
        """Return the declared schema with references to the schemas that it imports."""
        references = self._serde.references_to_imports(self._use.registry(), register=register)
        return replace(declared, references=(*declared.references, *references))

    def preview(self) -> RegistrationPreview:
        settings = self._settings
        registry = self._use.registry()
        declared = self._serde.declared_schema()
        if settings.use_schema_id is not None or settings.use_latest_version or declared is None:
            return self._preview_selected(declared)
        subject = self._subject(declared)
        try:
            schema = self._with_imports(declared, register=False)
        except SchemaNotFoundError:
            return RegistrationPreview(subject, True)  # the schema itself cannot be registered without its imports
        try:
            registry.lookup(subject, schema, normalize=settings.normalize)
            return RegistrationPreview(subject, False)
        except SchemaNotFoundError as error:
            if not settings.auto_register:
                return RegistrationPreview(subject, False, [f"{error}; auto.register.schemas is false"])
        return RegistrationPreview(subject, True, registry.incompatibilities(subject, schema))

    def _preview_selected(self, declared: Schema | None) -> RegistrationPreview:
        """Return the preview for a selected schema, which must be registered already."""
        schema_id = self._settings.use_schema_id
        subject = self._subject(declared) if schema_id is None else f"schema id {schema_id}"
        try:
            self._schema_to_write()
        except (SerdeError, SchemaNotFoundError) as error:
            return RegistrationPreview(subject, False, [str(error)])
        return RegistrationPreview(subject, False)

    def _require_compatible(
        self, selected: RegisteredSchema, declared: Schema | None, setting: str
    ) -> RegisteredSchema:
        """Return the selected schema. Raises SerdeError if it cannot read values of the declared schema."""
        is_new = selected.id not in self._writers
        is_strict = self._settings.strict and self._use.config.get(setting, True)
        if declared is None or not (is_new and is_strict):
            return selected
        reasons = self._serde.write_incompatibilities(selected, declared, self._use.registry())
        if reasons:
            raise SerdeError(
                f"schema id {selected.id} cannot read what {self._serde!r} describes: {'; '.join(reasons)}. Set "
                f"{setting}=false to write with this schema anyway."
            )
        return selected

    def portable_use(self) -> SerdeUse | None:
        """Return the use without the settings that are functions. Schemas do not need them."""
        return replace(self._use, config=self._use.config.plain())
