"""`MessagesOfSchema`: the messages of one schema in a registry, of which each record names the one that it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, FileDescriptor

from kstreams.errors import SerdeError
from kstreams.serdes.protobuf.codecs import Decode
from kstreams.serdes.protobuf.declarations import MessageSource, named_message
from kstreams.serdes.protobuf.message_index import decoded, message_at
from kstreams.serdes.schemas import Reader

_FIRST = b"\x00"


@dataclass(frozen=True, slots=True)
class MessagesOfSchema:
    """The messages of a file that a registry has under an id."""

    file: FileDescriptor
    id: int

    def named(self, name: str | None) -> Descriptor:
        """A message by its full name, or by its name alone, and the first one without a name."""
        return named_message(self.file, name) if name else self.at((0,))

    def begins_with(self, message: Descriptor | None) -> bool:
        """Whether the first message is the one of a name: then it is what records usually are."""
        return message is not None and self.at((0,)).name == message.name

    def at(self, index: tuple[int, ...]) -> Descriptor:
        """The message at an index."""
        try:
            return message_at(self.file, index)
        except SerdeError as error:
            raise SerdeError(f"the schema with id {self.id} has no message at the index {list(index)}") from error


def reader_by_index(messages: MessagesOfSchema, source: MessageSource, start: int) -> Reader:
    """What reads records of a schema: behind the frame, which ends at `start`, each says which message it is."""
    decoders: dict[tuple[int, ...], Decode] = {}
    first = start + 1

    def decoder(index: tuple[int, ...]) -> Decode:
        decode = decoders.get(index)
        if decode is None:
            try:
                decode = decoders[index] = source.decoder(messages.at(index))
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

    return Reader(one, many)
