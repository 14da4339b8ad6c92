"""`reader_by_index`: what reads the records of a schema, of which each says which message of its file it is."""

from __future__ import annotations

from typing import Any

from kstreams.errors import SerdeError
from kstreams.serdes.protobuf.codecs import Decode
from kstreams.serdes.protobuf.declarations import MessageSource
from kstreams.serdes.protobuf.message_index import decoded
from kstreams.serdes.protobuf.messages_of_schema import MessagesOfSchema
from kstreams.serdes.schemas import SchemaReader

_FIRST = b"\x00"


def reader_by_index(messages: MessagesOfSchema, source: MessageSource, start: int) -> SchemaReader:
    """What reads records of a schema: behind the frame, which ends at `start`, each says which message it is."""
    decoders: dict[tuple[int, ...], Decode] = {}
    first = start + 1

    def decoder(index: tuple[int, ...]) -> Decode:
        decode = decoders.get(index)
        if decode is None:
            try:
                decode = decoders[index] = source.decoder(messages.at(index))
            except RecursionError:
                raise SerdeError(f"the messages of schema id {messages.id} hold each other too deeply") from None
            except SerdeError as error:
                raise SerdeError(f"schema id {messages.id} cannot be read as Protobuf({source}): {error}") from error
        return decode

    if messages.begins_with(source.message()):
        decoder((0,))

    def one(data: bytes) -> Any:
        if data[start:first] == _FIRST:
            return decoder((0,))(data[first:])
        index, end = decoded(data, start)
        return decoder(index)(data[end:])

    def many(rows: list[bytes]) -> list[Any]:
        if all(row[start:first] == _FIRST for row in rows):
            decode = decoder((0,))
            return [decode(row[first:]) for row in rows]
        return [one(row) for row in rows]

    return SchemaReader(one, many)
