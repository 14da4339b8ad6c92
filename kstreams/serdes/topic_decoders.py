"""`topic_decoder`: keys or values of one topic in a form that JSON can hold, with schemas from a registry."""

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
OnTrouble: TypeAlias = Callable[[KStreamsError], None]

KIND_OF_TYPE: Final[dict[SchemaType, str]] = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json-schema"}
"""The names of serdes by the type of their schemas."""


def topic_decoder(kind: str, use: SerdeUse | None, on_trouble: OnTrouble = lambda error: None) -> Decode:
    """Return the function that turns keys or values of a topic into values that JSON can hold.

    Parameters
    ----------
    kind : str
        The name of a serde, or `auto`: bytes that begin with the id of a schema in the registry are then read with that
        schema.
    use : SerdeUse or None
        The topic and its registry; None where there is no registry.
    on_trouble : callable
        Called once if the registry does not answer for `auto`; from then on bytes are guessed without it.

    Examples
    --------
    >>> topic_decoder("int", None)(bytes(8), ())
    0
    """
    name = checked_kind(kind)
    if use is not None and name == AUTO:
        return _Guess(use, on_trouble)
    if use is not None and needs_registry(name):
        return _by_schema(serde_named(name), use)
    plain = decoder(name)
    return lambda data, headers: plain(data)


def needs_registry(kind: str) -> bool:
    """Return whether values of a kind are read and written with a schema registry.

    Examples
    --------
    >>> needs_registry("windowed(avro, 1000)"), needs_registry("hex")
    (True, False)
    """
    name = checked_kind(kind)
    return name not in (AUTO, RAW, HEX) and serde_named(name).asks_registry


def _by_schema(serde: Serde, use: SerdeUse) -> Decode:
    read = serde.of_topic(use).deserialize
    header = header_name(is_key=use.is_key)
    return lambda data, headers: None if data is None else shown(read(framed(data, headers, header)))


class _Guess:
    """Decoder that uses the schema whose id the bytes begin with, and guesses the type of all other bytes."""

    def __init__(self, use: SerdeUse, on_trouble: OnTrouble) -> None:
        self._use = use
        self._on_trouble = on_trouble
        self._plain = decoder(AUTO)
        self._header = header_name(is_key=use.is_key)
        self._by_type: dict[SchemaType, Decode] = {}
        self._types: dict[bytes, SchemaType | None] = {}
        self._is_away = False

    def __call__(self, data: bytes | None, headers: Headers) -> Any:
        if data is not None:
            decode = self._named_by(framed(data, headers, self._header))
            if decode is not None:
                try:
                    return decode(data, headers)
                except SerdeError:
                    pass  # the bytes only look like a frame
        return self._plain(data)

    def _named_by(self, data: bytes) -> Decode | None:
        """Return the decoder for the schema of the bytes, or None if they name none."""
        length = LENGTHS.get(data[0]) if data else None
        if length is None or len(data) <= length or self._is_away:
            return None
        frame = data[:length]
        if frame not in self._types:
            self._types[frame] = self._type_of(frame)
        kind = self._types[frame]
        return None if kind is None else self._reader(kind)

    def _type_of(self, frame: bytes) -> SchemaType | None:
        try:
            named: RegisteredSchema = schema_of_frame(frame, self._use.registry())
        except SchemaNotFoundError:
            return None
        except KStreamsError as error:
            self._is_away = True
            self._on_trouble(error)
            return None
        return named.schema.type

    def _reader(self, kind: SchemaType) -> Decode:
        if kind not in self._by_type:
            self._by_type[kind] = _by_schema(serde_named(KIND_OF_TYPE[kind]), self._use)
        return self._by_type[kind]
