"""Which member of a oneof holds values of which type of a union."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import FieldDescriptor, OneofDescriptor

from kstreams.errors import SerdeError
from kstreams.serdes.protobuf.fields import alternatives, class_of, shape_for, shown
from kstreams.serdes.protobuf.leaves import leaf
from kstreams.serdes.protobuf.names import snake_case


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a oneof, and the type of the union that it holds."""

    field: FieldDescriptor
    info: Any
    kind: type


def members(oneof: OneofDescriptor, info: Any) -> list[Member]:
    """A member for each type of a union: by the class's name, else the first that takes its values.

    Raises
    ------
    SerdeError
        When a type has no member.
    """
    free = list(oneof.fields)
    taken = []
    for member in alternatives(info).types:
        field = _field_for(member, free)
        if field is None:
            raise SerdeError(f"the oneof {oneof.full_name} has no field for {shown(member)}")
        free.remove(field)
        taken.append(Member(field, member, class_of(member)))
    return taken


def _field_for(info: Any, fields: list[FieldDescriptor]) -> FieldDescriptor | None:
    name = getattr(info, "cls", type(None)).__name__
    for field in fields:
        if field.message_type is not None and field.message_type.name == name:
            return field
    for field in fields:
        if field.name == snake_case(name):
            return field
    return next((field for field in fields if _takes(field, info)), None)


def _takes(field: FieldDescriptor, info: Any) -> bool:
    return leaf(field, info) is not None or bool(field.message_type and shape_for(field.message_type, info) is not None)
