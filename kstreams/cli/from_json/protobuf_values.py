"""`of_message`: converts JSON into the dicts from which Protobuf messages are written.

Fields have the names of the `.proto` file or their lowerCamelCase forms. Times and dates are texts in ISO form, bytes
are base64, and enum values have their names.
"""

from __future__ import annotations

import datetime
import decimal
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from kstreams.cli.from_json.texts import child_path, misfit, of_class

_CLASSES: Final[dict[str, type]] = {
    "google.protobuf.Timestamp": datetime.datetime,
    "google.protobuf.Duration": datetime.timedelta,
    "google.type.Date": datetime.date,
    "google.type.TimeOfDay": datetime.time,
    "confluent.type.Decimal": decimal.Decimal,
    "google.protobuf.BytesValue": bytes,
}
_UNCONVERTED_PACKAGE: Final = "google.protobuf."
"""The package of JSON values and of wrappers of numbers and texts, which are not converted."""


def of_message(message: Descriptor, value: object, path: str = "") -> dict[str, object]:
    """Return the fields of a message for JSON.

    Raises
    ------
    SerdeError
        If a value does not fit. The message names the field.
    """
    if not isinstance(value, dict):
        raise misfit(value, message.full_name, path)
    fields = {}
    for name, part in value.items():
        field = message.fields_by_name.get(name) or message.fields_by_camelcase_name.get(name)
        if field is None:
            raise misfit(value, message.full_name, path, f"it has no field {name}")
        fields[field.name] = _of_field(field, part, child_path(path, field.name))
    return fields


def _of_field(field: FieldDescriptor, value: object, path: str) -> Any:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        if not isinstance(value, dict):
            raise misfit(value, "map", path)
        keys = entry.fields_by_name["key"]
        values = entry.fields_by_name["value"]
        return {_key(keys, key, path): _of_one(values, part, child_path(path, key)) for key, part in value.items()}
    if field.is_repeated:
        if not isinstance(value, list):
            raise misfit(value, "list", path)
        return [_of_one(field, part, path) for part in value]
    return None if value is None else _of_one(field, value, path)


def _key(field: FieldDescriptor, key: str, path: str) -> Any:
    """Return a key of a map from its text in JSON."""
    if field.type == FieldDescriptor.TYPE_STRING:
        return key
    if field.type == FieldDescriptor.TYPE_BOOL:
        return {"true": True, "false": False}.get(key, key)
    try:
        return int(key)
    except ValueError:
        raise misfit(key, "number", path) from None


def _of_one(field: FieldDescriptor, value: object, path: str) -> Any:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return of_class(value, bytes, path)
    if field.message_type is None:
        return value
    name = field.message_type.full_name
    if name in _CLASSES:
        return of_class(value, _CLASSES[name], path)
    return value if name.startswith(_UNCONVERTED_PACKAGE) else of_message(field.message_type, value, path)
