"""`topic_decoder`: decodes keys or values of one topic to JSON values, with schemas of a registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from kstreams.errors import KStreamsError, SchemaNotFoundError, SerdeError
from kstreams.record import Headers
from kstreams.schemas import RegisteredSchema, SchemaType
from kstreams.serdes import serde_named
from kstreams.serdes.base import Serde, SerdeUse
from kstreams.serdes.byte_kinds import AUTO, HEX, RAW, checked_kind, decoder, shown
from kstreams.serdes.schemas.frame import LENGTHS, framed, header_name, schema_of_frame

Decode: TypeAlias = Callable[[bytes | None, Headers], Any]
"""`(bytes, headers of the record) -> JSON value`. Raises SerdeError for bytes of another kind."""
OnRegistryError: TypeAlias = Callable[[KStreamsError], None]

KIND_OF_TYPE: Final[dict[SchemaType, str]] = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json-schema"}
"""The names of serdes by the type of their schemas."""


def topic_decoder(kind: str, use: SerdeUse | None, on_registry_error: OnRegistryError = lambda error: None) -> Decode:
    """Return the function that decodes keys or values of a topic to values that JSON can represent.

    Parameters
    ----------
    kind : str
        The name of a serde, or `auto`. With `auto`, bytes that begin with the id of a registered schema are decoded
        with this schema.
    use : SerdeUse or None
        The topic and its registry. None without a registry.
    on_registry_error : callable
        Called once if the registry does not answer for `auto`. All later types are guessed without the registry.

    Examples
    --------
    >>> topic_decoder("int", None)(bytes(8), ())
    0
    """
    name = checked_kind(kind)
    if use is not None and name == AUTO:
        return _AutoDecoder(use, on_registry_error)
    if use is not None and needs_registry(name):
        return _registry_decoder(serde_named(name), use)
    plain = decoder(name)
    return lambda data, headers: plain(data)


def needs_registry(kind: str) -> bool:
    """True if values of a kind are read and written with a schema registry.

    Examples
    --------
    >>> needs_registry("windowed(avro, 1000)"), needs_registry("hex")
    (True, False)
    """
    name = checked_kind(kind)
    return name not in (AUTO, RAW, HEX) and serde_named(name).asks_registry


def _registry_decoder(serde: Serde, use: SerdeUse) -> Decode:
    read = serde.of_topic(use).deserialize
    header = header_name(is_key=use.is_key)
    return lambda data, headers: None if data is None else shown(read(framed(data, headers, header)))


class _AutoDecoder:
    """Decoder of bytes by the schema whose id they begin with. It guesses the type of bytes without a schema id."""

    def __init__(self, use: SerdeUse, on_registry_error: OnRegistryError) -> None:
        self._use = use
        self._on_registry_error = on_registry_error
        self._decode_without_registry = decoder(AUTO)
        self._header = header_name(is_key=use.is_key)
        self._by_type: dict[SchemaType, Decode] = {}
        self._type_of_frame: dict[bytes, SchemaType | None] = {}
        self._is_registry_down = False

    def __call__(self, data: bytes | None, headers: Headers) -> Any:
        if data is not None:
            decode = self._decoder_of_frame(framed(data, headers, self._header))
            if decode is not None:
                try:
                    return decode(data, headers)
                except SerdeError:
                    pass  # the first bytes only look like a schema id
        return self._decode_without_registry(data)

    def _decoder_of_frame(self, data: bytes) -> Decode | None:
        """Return the decoder for the schema whose id the bytes begin with. None if they begin with no known id."""
        length = LENGTHS.get(data[0]) if data else None
        if length is None or len(data) <= length or self._is_registry_down:
            return None
        frame = data[:length]
        if frame not in self._type_of_frame:
            self._type_of_frame[frame] = self._schema_type_of(frame)
        kind = self._type_of_frame[frame]
        return None if kind is None else self._decoder_of_type(kind)

    def _schema_type_of(self, frame: bytes) -> SchemaType | None:
        try:
            registered: RegisteredSchema = schema_of_frame(frame, self._use.registry())
        except SchemaNotFoundError:
            return None
        except KStreamsError as error:
            self._is_registry_down = True
            self._on_registry_error(error)
            return None
        return registered.schema.type

    def _decoder_of_type(self, kind: SchemaType) -> Decode:
        if kind not in self._by_type:
            self._by_type[kind] = _registry_decoder(serde_named(KIND_OF_TYPE[kind]), self._use)
        return self._by_type[kind]
