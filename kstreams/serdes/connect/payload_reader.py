"""`PayloadReader`: reads payloads with the schema that each of them carries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kstreams.serdes.connect.codec import Codec
from kstreams.serdes.connect.schema import ConnectSchema, parsed_schema
from kstreams.serdes.connect.wrapped import SCHEMALESS, prefix_of, split_schema

_MAX_SCHEMAS: Final = 256
"""A topic has a few schemas. More are those of a damaged topic, and are not retained."""


class PayloadReader:
    """Reads payloads. A codec is built once for each schema.

    Parameters
    ----------
    codec_of : callable
        `schema or None -> codec`.
    """

    def __init__(self, codec_of: Callable[[ConnectSchema | None], Codec]) -> None:
        self._codec_of = codec_of
        self._codecs: dict[bytes, Codec] = {SCHEMALESS: codec_of(None)}
        self._prefix = prefix_of(SCHEMALESS)
        self._codec = self._codecs[SCHEMALESS]

    @property
    def schemaless(self) -> Codec:
        """The codec of payloads without a schema."""
        return self._codecs[SCHEMALESS]

    def read(self, data: bytes) -> Any:
        """Return the value of a payload, which its schema may precede.

        Raises
        ------
        ValueError
            If the payload does not fit the type. SerdeError and `msgspec.MsgspecError` are raised as well.
        """
        codec, payload = self.split(data)
        return codec.decode(payload)

    def split(self, data: bytes) -> tuple[Codec, bytes]:
        """Return the codec of a payload, and the payload."""
        prefix = self._prefix
        codec = self._codec
        if data.startswith(prefix) and data.endswith(b"}"):  # the schema of the record before
            return codec, data[len(prefix) : -1]
        if b'"payload"' not in data:
            return self.schemaless, data
        schema, payload = split_schema(data)
        if schema == SCHEMALESS:
            return self.schemaless, payload
        codec = self._of_schema(schema)
        self._prefix = prefix_of(schema)
        self._codec = codec
        return codec, payload

    def _of_schema(self, schema: bytes) -> Codec:
        codec = self._codecs.get(schema)
        if codec is None:
            codec = self._codec_of(parsed_schema(schema))
            if len(self._codecs) < _MAX_SCHEMAS:
                self._codecs[schema] = codec
        return codec
