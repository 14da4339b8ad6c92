"""`SchemaOptions`: options of serdes with schemas. `WriterSettings` completes them with the configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from kstreams.config import Config
from kstreams.errors import ConfigError
from kstreams.schemas import SchemaReference

SubjectName: TypeAlias = Callable[[str, bool, str], str]
"""`(topic, is_key, full name of the record) -> subject`."""


def topic_name(topic: str, is_key: bool, record: str) -> str:
    """Name the subject after the topic. This is the default of Confluent's serializers.

    Examples
    --------
    >>> topic_name("orders", False, "shop.Order")
    'orders-value'
    """
    return f"{topic}-{'key' if is_key else 'value'}"


def record_name(topic: str, is_key: bool, record: str) -> str:
    """Name the subject after the record, so that all topics share its versions.

    Examples
    --------
    >>> record_name("orders", False, "shop.Order")
    'shop.Order'
    """
    return record


def topic_record_name(topic: str, is_key: bool, record: str) -> str:
    """Name the subject after topic and record, so that a topic can hold records of several types.

    Examples
    --------
    >>> topic_record_name("orders", False, "shop.Order")
    'orders-shop.Order'
    """
    return f"{topic}-{record}"


STRATEGIES: Final[dict[str, SubjectName]] = {
    "topic": topic_name,
    "record": record_name,
    "topic-record": topic_record_name,
    "TopicNameStrategy": topic_name,
    "RecordNameStrategy": record_name,
    "TopicRecordNameStrategy": topic_record_name,
}
"""Strategies by their names in kstreams and by the names of Confluent's classes."""


def subject_name(strategy: object) -> SubjectName:
    """Return the strategy with a name, which may be that of Confluent's class. A function is returned unchanged.

    Raises
    ------
    ConfigError
        If no strategy has this name.

    Examples
    --------
    >>> subject_name("io.confluent.kafka.serializers.subject.RecordNameStrategy")("orders", False, "shop.Order")
    'shop.Order'
    """
    if callable(strategy):
        function: SubjectName = strategy
        return function
    named_strategy = STRATEGIES.get(str(strategy).rpartition(".")[2])
    if named_strategy is None:
        names = ", ".join(name for name in STRATEGIES if name.islower())
        raise ConfigError(
            f"{strategy!r} names no strategy for subjects: write one of {names}, or a function (topic, is_key, record) "
            "that returns the subject"
        )
    return named_strategy


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
    """Options that select the schema to write with. The setting applies to an option that is None.

    Parameters
    ----------
    subject : str or callable, optional
        `"topic"`, `"record"`, `"topic-record"`, or `(topic, is_key, record) -> subject`. Setting:
        `value.subject.name.strategy`, `key.subject.name.strategy`.
    auto_register : bool, optional
        True to register a schema that the subject does not have. Setting: `auto.register.schemas`.
    use_latest_version : bool, optional
        True to write with the newest version of the subject. Setting: `use.latest.version`.
    use_schema_id : int, optional
        The id of the schema to write with. Setting: `use.schema.id`.
    normalize : bool, optional
        True if the registry compares normalized schemas. Setting: `normalize.schemas`.
    strict : bool
        True if a selected schema must be able to read the values of the declared schema, unless
        `latest.compatibility.strict` or `id.compatibility.strict` is false.
    schema_id : {"prefix", "header"}, optional
        `"prefix"` for an id before the bytes, `"header"` for a GUID in a header. Setting: `value.schema.id.serializer`,
        `key.schema.id.serializer`.
    references : tuple of SchemaReference
        Schemas of other subjects that the declared schema uses.
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
    """The options of a serde, completed with the settings of the application."""

    subject: SubjectName
    auto_register: bool
    use_latest_version: bool
    use_schema_id: int | None
    normalize: bool
    strict: bool
    is_in_header: bool

    @classmethod
    def of(cls, options: SchemaOptions, config: Config, *, is_key: bool) -> WriterSettings:
        """Complete options with the settings for keys or for values."""
        side = "key" if is_key else "value"

        def completed(option: object, setting: str, default: object) -> Any:
            return config.get(setting, default) if option is None else option

        return cls(
            subject=subject_name(completed(options.subject, f"{side}.subject.name.strategy", "topic")),
            auto_register=completed(options.auto_register, "auto.register.schemas", True),
            use_latest_version=completed(options.use_latest_version, "use.latest.version", False),
            use_schema_id=completed(options.use_schema_id, "use.schema.id", None),
            normalize=completed(options.normalize, "normalize.schemas", False),
            strict=options.strict,
            is_in_header=_place(completed(options.schema_id, f"{side}.schema.id.serializer", PREFIX)) == HEADER,
        )


def _place(name: str) -> str:
    place = _PLACES.get(str(name).rpartition(".")[2])
    if place is None:
        raise ConfigError(f"{name!r} is no place for the id of a schema: write 'prefix' or 'header'")
    return place
