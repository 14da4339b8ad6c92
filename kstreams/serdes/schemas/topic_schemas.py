"""`TopicSchemas`: the readers and the writer of the keys or values of one topic, made when they are first needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol

from kstreams.errors import RegistryError, SchemaNotFoundError, SerdeError
from kstreams.schemas import RegisteredSchema, Schema, SchemaReference, SchemaRegistry, SchemaType
from kstreams.schemas.compatibility.rules import incompatibilities, resolved_by
from kstreams.serdes.base import SerdeUse
from kstreams.serdes.schemas.codecs import SchemaReader, SchemaWriter, UnreadableSchemaError
from kstreams.serdes.schemas.frame import frame_of_guid, frame_of_id, named_in, schema_of_frame
from kstreams.serdes.schemas.options import SchemaOptions, WriterSettings


class SchemaFormat(ABC):
    """The schema that a serde declares, and readers and writers of schemas."""

    schema_type: ClassVar[SchemaType]
    options: SchemaOptions

    @abstractmethod
    def declared_schema(self) -> Schema | None:
        """The schema of what it writes; None where none was declared."""

    def imported(self, registry: SchemaRegistry, *, register: bool) -> tuple[SchemaReference, ...]:
        """References to schemas that the declared one imports; with `register` they are registered before it."""
        return ()

    @abstractmethod
    def record_name(self, schema: Schema) -> str:
        """The full name of the record of a schema, by which subjects may go."""

    @abstractmethod
    def reader_of(self, written: RegisteredSchema, registry: SchemaRegistry, start: int) -> SchemaReader:
        """What reads bytes of a schema; the first `start` of them are the frame.

        Raises
        ------
        SerdeError
            When nothing of this schema can be read as what the serde declares.
        """

    @abstractmethod
    def writer_of(self, registered: RegisteredSchema, registry: SchemaRegistry, frame: bytes) -> SchemaWriter:
        """What writes with a schema, `frame` in front."""

    def unreadable(self, latest: RegisteredSchema, declared: Schema, registry: SchemaRegistry) -> Sequence[str]:
        """Why a schema cannot read what was written with the declared one, in words."""
        reasons = incompatibilities(resolved_by(registry, latest.schema), resolved_by(registry, declared))
        return list(map(str, reasons))


class Outlook(NamedTuple):
    """What will become of a schema with which nothing was written yet."""

    subject: str
    """Where it is to be registered; for what is written with a schema that is chosen by its id, its name."""
    is_new: bool
    """Whether it will be a new version there."""
    reasons: Sequence[str] = ()
    """Why nothing can be written with it."""


class Schemas(Protocol):
    """Where a serde gets its readers and its writer from."""

    in_header: bool
    is_key: bool

    def reader(self, frame: bytes) -> SchemaReader:
        """What reads bytes with this frame."""
        ...

    def writer(self) -> SchemaWriter:
        """What writes values."""
        ...

    def outlook(self) -> Outlook:
        """What will become of the declared schema."""
        ...

    def portable_use(self) -> SerdeUse | None:
        """The use as it travels to another process; None without one."""
        ...


class NoSchemas:
    """Those of a serde that no application uses: there is no registry to ask."""

    in_header = False
    is_key = False

    def __init__(self, serde: SchemaFormat) -> None:
        self._serde = serde

    def reader(self, frame: bytes) -> SchemaReader:
        raise self._error()

    def writer(self) -> SchemaWriter:
        raise self._error()

    def outlook(self) -> Outlook:
        raise self._error()

    def portable_use(self) -> SerdeUse | None:
        return None

    def _error(self) -> SerdeError:
        return SerdeError(
            f"{self._serde!r} reads and writes with the schema registry of an application: give it to a topic, a store "
            "or a topic of the test driver, and set schema.registry.url (`local:` needs no server)"
        )


def _unreadable(reason: str) -> SchemaReader:
    def fail(data: Any) -> Any:
        raise SerdeError(reason)

    return SchemaReader(fail, fail)


class TopicSchemas:
    """Those of a serde that knows its topic.

    Parameters
    ----------
    serde : SchemaFormat
        Makes readers and writers of schemas.
    use : SerdeUse
    """

    def __init__(self, serde: SchemaFormat, use: SerdeUse) -> None:
        self._serde = serde
        self._use = use
        self.is_key = use.is_key
        self._settings = WriterSettings.of(serde.options, use.config, is_key=use.is_key)
        self.in_header = self._settings.in_header
        self._readers: dict[bytes, SchemaReader] = {}
        self._writers: dict[int, SchemaWriter] = {}
        self._chosen: list[SchemaWriter] = []
        self._follows_latest = self._settings.use_latest_version and use.config.get("latest.cache.ttl.sec", -1) >= 0

    def reader(self, frame: bytes) -> SchemaReader:
        reader = self._readers.get(frame)
        return self._new_reader(frame) if reader is None else reader

    def writer(self) -> SchemaWriter:
        """The writer of the schema that was chosen first; of the newest version if that is to be looked for again."""
        if self._chosen and not self._follows_latest:
            return self._chosen[-1]
        try:
            registered = self._registered()
        except RegistryError:
            if not self._chosen:
                raise
            return self._chosen[-1]  # the newest version that is known while the registry is away
        writer = self._writers.get(registered.id) or self._new_writer(registered)
        self._chosen[:] = [writer]
        return writer

    def _new_reader(self, frame: bytes) -> SchemaReader:
        registry = self._use.registry()
        try:
            written = schema_of_frame(frame, registry)
        except SchemaNotFoundError as error:
            raise SerdeError(f"the schema registry has no {named_in(frame)}: {error}") from error
        if written.schema.type != self._serde.schema_type:
            raise SerdeError(f"{named_in(frame)} is of type {written.schema.type}, which {self._serde!r} does not read")
        reader = self._readers[frame] = self._reader_of(written, len(frame))
        return reader

    def _reader_of(self, written: RegisteredSchema, start: int) -> SchemaReader:
        """What reads a schema; of one that cannot be read, what raises why for each record."""
        try:
            reader = self._serde.reader_of(written, self._use.registry(), start)
        except SerdeError as error:
            return _unreadable(f"{error}{self._own_id()}")
        one, many = (self._naming_both(read, written) for read in (reader.one, reader.many))
        return SchemaReader(one, many, reader.fields)

    def _naming_both(self, read: Callable[[Any], Any], written: RegisteredSchema) -> Callable[[Any], Any]:
        """What reads, with both schemas in the error of a record that one of them has no place for."""

        def reading(data: Any) -> Any:
            try:
                return read(data)
            except UnreadableSchemaError as error:
                reason = f"schema id {written.id} cannot be read as {self._serde!r}: {error}{self._own_id()}"
                raise SerdeError(reason) from error

        return reading

    def _own_id(self) -> str:
        """The id under which the declared schema is registered, where it is."""
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
            return ""  # it is not known now

    def _new_writer(self, registered: RegisteredSchema) -> SchemaWriter:
        if self.in_header and not registered.guid:
            raise SerdeError(
                f"the schema registry tells no GUID of schema id {registered.id}, which would go into a header: write "
                "ids instead, with schema_id='prefix'"
            )
        frame = frame_of_guid(registered.guid) if self.in_header else frame_of_id(registered.id)
        writer = self._writers[registered.id] = self._serde.writer_of(registered, self._use.registry(), frame)
        return writer

    def _registered(self) -> RegisteredSchema:
        """The schema to write with, as Confluent's serializers choose it."""
        settings = self._settings
        registry = self._use.registry()
        declared = self._serde.declared_schema()
        if settings.use_schema_id is not None:
            return self._checked(registry.schema(settings.use_schema_id), declared, "id.compatibility.strict")
        subject = self._subject(declared)
        if settings.use_latest_version:
            return self._checked(registry.version(subject), declared, "latest.compatibility.strict")
        if declared is None:
            raise SerdeError(
                f"{self._serde!r} has no schema to write topic {self._use.topic} with: name a class or a schema, as in "
                "ks.Avro(Order), or set use.latest.version"
            )
        schema = self._with_imports(declared, register=settings.auto_register)
        enter = registry.register if settings.auto_register else registry.lookup
        registered = enter(subject, schema, normalize=settings.normalize)
        return replace(registered, schema=schema)  # a registry may answer with another form of the same schema

    def _subject(self, declared: Schema | None) -> str:
        record = "" if declared is None else self._serde.record_name(declared)
        return self._settings.subject(self._use.topic, self._use.is_key, record)

    def _with_imports(self, declared: Schema, *, register: bool) -> Schema:
        """The declared schema with references to what it imports, which may be registered before it."""
        imported = self._serde.imported(self._use.registry(), register=register)
        return replace(declared, references=(*declared.references, *imported))

    def outlook(self) -> Outlook:
        """What will become of the declared schema; nothing is registered."""
        settings = self._settings
        registry = self._use.registry()
        declared = self._serde.declared_schema()
        if settings.use_schema_id is not None or settings.use_latest_version or declared is None:
            return self._chosen_outlook(declared)
        subject = self._subject(declared)
        try:
            schema = self._with_imports(declared, register=False)
        except SchemaNotFoundError:
            return Outlook(subject, True)  # what it imports is registered before it
        try:
            registry.lookup(subject, schema, normalize=settings.normalize)
            return Outlook(subject, False)
        except SchemaNotFoundError as error:
            if not settings.auto_register:
                return Outlook(subject, False, [f"{error}; auto.register.schemas is false"])
        return Outlook(subject, True, registry.incompatibilities(subject, schema))

    def _chosen_outlook(self, declared: Schema | None) -> Outlook:
        """Of what is written with a schema that is there."""
        number = self._settings.use_schema_id
        subject = self._subject(declared) if number is None else f"schema id {number}"
        try:
            self._registered()
        except (SerdeError, SchemaNotFoundError) as error:
            return Outlook(subject, False, [str(error)])
        return Outlook(subject, False)

    def _checked(self, chosen: RegisteredSchema, declared: Schema | None, setting: str) -> RegisteredSchema:
        """A schema of others to write with; raises SerdeError when values of the declared one would not fit it."""
        is_new = chosen.id not in self._writers
        is_strict = is_new and self._settings.strict and self._use.config.get(setting, True)
        reasons = self._serde.unreadable(chosen, declared, self._use.registry()) if declared and is_strict else ()
        if reasons:
            raise SerdeError(
                f"schema id {chosen.id} cannot read what {self._serde!r} describes: {'; '.join(reasons)}. Set "
                f"{setting}=false to write with it all the same."
            )
        return chosen

    def portable_use(self) -> SerdeUse | None:
        """Settings that are functions say nothing about schemas, and need not travel."""
        return replace(self._use, config=self._use.config.plain())
