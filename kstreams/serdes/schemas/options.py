"""`SchemaOptions`: what the serde of a format leaves to settings, or decides itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kstreams.config import Config
from kstreams.errors import ConfigError
from kstreams.schemas import SchemaReference
from kstreams.serdes.schemas.subjects import SubjectName, subject_name

PREFIX = "prefix"
HEADER = "header"
_PLACES: Final = {
    PREFIX: PREFIX,
    HEADER: HEADER,
    "PrefixSchemaIdSerializer": PREFIX,
    "HeaderSchemaIdSerializer": HEADER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaOptions:
    """How a serde finds the schema with which it writes; None: as the settings say.

    Parameters
    ----------
    subject : str or callable, optional
        `"topic"`, `"record"`, `"topic-record"`, or `(topic, is_key, record) -> subject`. Setting:
        `value.subject.name.strategy`, `key.subject.name.strategy`.
    auto_register : bool, optional
        Whether a schema that the subject does not have becomes its next version. Setting: `auto.register.schemas`.
    use_latest_version : bool, optional
        Whether to write with the newest version of the subject. Setting: `use.latest.version`.
    use_schema_id : int, optional
        The id of the schema to write with. Setting: `use.schema.id`.
    normalize : bool, optional
        Whether the registry compares schemas by their meaning. Setting: `normalize.schemas`.
    strict : bool
        Whether a schema of others must be able to read what the declared one describes, unless
        `latest.compatibility.strict` or `id.compatibility.strict` is false.
    schema_id : {"prefix", "header"}, optional
        Whether ids stand before the bytes, or GUIDs in a header. Setting: `value.schema.id.serializer`,
        `key.schema.id.serializer`.
    references : tuple of SchemaReference
        Schemas of other subjects that the declared schema names.
    """

    subject: str | Callable[[str, bool, str], str] | None = None
    auto_register: bool | None = None
    use_latest_version: bool | None = None
    use_schema_id: int | None = None
    normalize: bool | None = None
    strict: bool = True
    schema_id: str | None = None
    references: tuple[SchemaReference, ...] = ()

    def __post_init__(self) -> None:
        if self.subject is not None:
            subject_name(self.subject)
        if self.schema_id is not None:
            _place(self.schema_id)


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """The options of a serde, with settings for what it leaves open."""

    subject: SubjectName
    auto_register: bool
    use_latest_version: bool
    use_schema_id: int | None
    normalize: bool
    strict: bool
    in_header: bool

    @classmethod
    def of(cls, options: SchemaOptions, config: Config, *, is_key: bool) -> WriterSettings:
        """The settings of keys or values."""
        side = "key" if is_key else "value"

        def chosen(own: Any, setting: str, default: Any) -> Any:
            return config.get(setting, default) if own is None else own

        return cls(
            subject_name(chosen(options.subject, f"{side}.subject.name.strategy", "topic")),
            chosen(options.auto_register, "auto.register.schemas", True),
            chosen(options.use_latest_version, "use.latest.version", False),
            chosen(options.use_schema_id, "use.schema.id", None),
            chosen(options.normalize, "normalize.schemas", False),
            options.strict,
            _place(chosen(options.schema_id, f"{side}.schema.id.serializer", PREFIX)) == HEADER,
        )


def _place(name: str) -> str:
    place = _PLACES.get(str(name).rpartition(".")[2])
    if place is None:
        raise ConfigError(f"{name!r} is no place for the id of a schema: write 'prefix' or 'header'")
    return place
