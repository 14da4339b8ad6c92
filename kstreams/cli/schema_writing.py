"""`topic_encoders`: encoders of lines and JSON as keys and values, by types or by schemas of a registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from kstreams.errors import SchemaNotFoundError, SerdeError
from kstreams.kernel.decoders import decode_json
from kstreams.schemas import RegisteredSchema
from kstreams.serdes.base import Serde, SerdeUse
from kstreams.serdes.byte_kinds import checked_kind, encode_json, encoder
from kstreams.serdes.schemas.options import PREFIX, topic_name
from kstreams.serdes.topic_decoders import KIND_OF_TYPE


class Encoders(NamedTuple):
    """The encoders of keys or values.

    Parameters
    ----------
    line : callable
        `line -> bytes`.
    json : callable
        `value of JSON -> bytes or None`.
    """

    line: Callable[[bytes], bytes]
    json: Callable[[Any], bytes | None]


class LineFormat(NamedTuple):
    """The serde of one schema, and the conversion of JSON into its values."""

    serde: Serde[object]
    of_json: Callable[[Any], Any]
    is_text: bool = False


def topic_encoders(kind: str, use: SerdeUse | None, subject: str | None = None) -> Encoders:
    """Return the encoders of the keys or values of a topic.

    Parameters
    ----------
    kind : str
        A kind of `checked_kind`. `avro`, `protobuf` and `json-schema` use the newest version of a subject.
    use : SerdeUse or None
        The topic with its registry.
    subject : str, optional
        Default: `TOPIC-key` or `TOPIC-value`.

    Raises
    ------
    SerdeError
        If there is no registry or no such subject, or if its schema is of another type.

    Examples
    --------
    >>> topic_encoders("int", None).json(7)
    b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x07'
    """
    name = checked_kind(kind)
    if name in _FORMATS:
        return _by_schema(name, use, subject)
    if subject is not None:
        raise SerdeError(f"a schema goes with {', '.join(_FORMATS)}, not with {name}")
    return Encoders(encoder(name), lambda value: encode_json(value, name))


def _by_schema(kind: str, use: SerdeUse | None, subject: str | None) -> Encoders:
    if use is None:
        raise SerdeError(f"{kind} is written with a schema registry: set schema.registry.url")
    subject = subject or topic_name(use.topic, use.is_key, "")
    newest = _newest(use, subject)
    if KIND_OF_TYPE[newest.schema.type] != kind:
        raise SerdeError(f"the schema of {subject} is not for {kind}: write with {KIND_OF_TYPE[newest.schema.type]}")
    line_format = _FORMATS[kind](newest, use)
    write = line_format.serde.of_topic(use).serialize

    def of_json(value: object) -> bytes | None:
        return None if value is None else write(line_format.of_json(value))

    return Encoders(lambda line: write(line_format.of_json(_read(line, line_format.is_text))), of_json)


def _newest(use: SerdeUse, subject: str) -> RegisteredSchema:
    try:
        return use.registry().version(subject)
    except SchemaNotFoundError as error:
        raise SerdeError(
            f"there is no schema to write with ({error}): register one with "
            f"`kstreams schemas register {subject} FILE`, or name another subject"
        ) from None


def _read(line: bytes, is_text: bool) -> Any:
    """Parse a line as JSON. If the schema is of texts, the quotes are optional."""
    if is_text and line[:1] != b'"':
        return line.decode()
    try:
        return decode_json(line)
    except msgspec.DecodeError as error:
        raise SerdeError(f"{line.decode(errors='replace')!r} is no JSON: {error}") from None


def _avro(registered: RegisteredSchema, use: SerdeUse) -> LineFormat:
    from kstreams.cli.from_json.avro_values import AvroValues
    from kstreams.serdes.avro import Avro
    from kstreams.serdes.avro.schema import loaded

    values = AvroValues(loaded(registered.schema, use.registry()))
    return LineFormat(Avro(use_schema_id=registered.id, schema_id=PREFIX), values.of_json, values.is_text)


def _protobuf(registered: RegisteredSchema, use: SerdeUse) -> LineFormat:
    from kstreams.cli.from_json.protobuf_values import of_message
    from kstreams.serdes.protobuf import Protobuf
    from kstreams.serdes.protobuf.messages_of_schema import MessagesOfSchema

    message = MessagesOfSchema.of(registered, use.registry()).named(None)
    return LineFormat(Protobuf(use_schema_id=registered.id, schema_id=PREFIX), lambda value: of_message(message, value))


def _json_schema(registered: RegisteredSchema, use: SerdeUse) -> LineFormat:
    from kstreams.serdes.json_schema import JsonSchema

    return LineFormat(JsonSchema(use_schema_id=registered.id, schema_id=PREFIX, validate=True), lambda value: value)


_FORMATS: Final[dict[str, Callable[[RegisteredSchema, SerdeUse], LineFormat]]] = {
    "avro": _avro,
    "protobuf": _protobuf,
    "json-schema": _json_schema,
}
