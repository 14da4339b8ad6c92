"""Whether records of one message type can be read as another: by field numbers, without a value that changes.

Protobuf itself reads a 64-bit integer as a 32-bit one by cutting it, and the last of several values as a single one.
Here such a reader is refused before it reads a wrong value.
"""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from kstreams.errors import SerdeError
from kstreams.serdes.protobuf.fields import is_map

_D = FieldDescriptor
_NAMES = {
    getattr(_D, name): name.removeprefix("TYPE_").lower()
    for name in vars(_D)
    if name.startswith("TYPE_")
}  # fmt: skip
_WIDER: dict[int, tuple[int, ...]] = {
    _D.TYPE_INT32: (_D.TYPE_INT64, _D.TYPE_ENUM),
    _D.TYPE_UINT32: (_D.TYPE_UINT64, _D.TYPE_INT64),
    _D.TYPE_SINT32: (_D.TYPE_SINT64,),
    _D.TYPE_BOOL: (_D.TYPE_INT32, _D.TYPE_INT64, _D.TYPE_UINT32, _D.TYPE_UINT64),
    _D.TYPE_ENUM: (_D.TYPE_INT32, _D.TYPE_INT64),
    _D.TYPE_STRING: (_D.TYPE_BYTES,),
    _D.TYPE_BYTES: (_D.TYPE_STRING,),
    _D.TYPE_MESSAGE: (_D.TYPE_BYTES,),
}
"""Of a type that was written, those that its values can be read as, beside itself."""


def demand_named(written: Descriptor, name: str) -> None:
    """Do nothing where a record is a message of a name, in whichever package; raise SerdeError for any other."""
    if written.name != name:
        raise SerdeError(
            f"the record is the message {written.full_name}, and {name} is what is read: name the message, as message="
            f"{written.name!r}, or read all messages of a topic as dicts with ks.Protobuf()"
        )


def demand_readable(written: Descriptor, read: Descriptor) -> None:
    """Do nothing where records of a writer's message can be read as a reader's.

    Raises
    ------
    SerdeError
        When they cannot: which field is in the way.
    """
    for reason in _reasons(written, read, set()):
        raise SerdeError(f"records of {written.full_name} cannot be read as {read.full_name}: {reason}")


def _reasons(written: Descriptor, read: Descriptor, seen: set[tuple[str, str]]) -> Iterator[str]:
    pair = (written.full_name, read.full_name)
    if pair in seen:
        return
    seen.add(pair)
    for field in written.fields:
        other = read.fields_by_number.get(field.number)
        if other is not None:
            yield from _field_reasons(field, other, seen)


def _field_reasons(field: FieldDescriptor, other: FieldDescriptor, seen: set[tuple[str, str]]) -> Iterator[str]:
    are_messages = field.type == other.type == _D.TYPE_MESSAGE
    if other.type != field.type and other.type not in _WIDER.get(field.type, ()):
        yield f"{_shown(field)} was written, {_shown(other)} is read"
    elif field.is_repeated and not other.is_repeated:
        yield f"{_shown(field)} was written several times, {_shown(other)} is read once"
    elif are_messages and is_map(field) != is_map(other):
        yield f"of {_shown(field)} and {_shown(other)} one is a map"
    elif are_messages:
        yield from _reasons(field.message_type, other.message_type, seen)


def _shown(field: FieldDescriptor) -> str:
    return f"the {_NAMES[field.type]} {field.name} = {field.number}"
