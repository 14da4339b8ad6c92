"""`AvroValues`: converts JSON into the values of an Avro schema.

Logical types are texts in ISO form, or numbers in the form of Avro. Bytes are base64, as `consume` prints them. A value
of a union may be tagged as in Avro's JSON: `{"string": "x"}`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kstreams.cli.from_json.texts import child_path, misfit, of_class
from kstreams.errors import SerdeError
from kstreams.serdes.avro.logical import AvroDuration, LogicalType, logical_of
from kstreams.serdes.avro.mapping import CLASSES
from kstreams.serdes.avro.schema import RECORDS, AvroSchema

_NAMED = (*RECORDS, "enum", "fixed")


class AvroValues:
    """Converts JSON into the values of a schema.

    Parameters
    ----------
    schema : AvroSchema

    Examples
    --------
    >>> from kstreams.serdes.avro.schema import parsed
    >>> due = {"name": "due", "type": {"type": "int", "logicalType": "date"}}
    >>> schema = parsed(str({"type": "record", "name": "Bill", "fields": [due]}).replace("'", '"'))
    >>> AvroValues(schema).of_json({"due": "2026-01-31"})
    {'due': datetime.date(2026, 1, 31)}
    """

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema

    @property
    def is_text(self) -> bool:
        """True if the values of the schema are texts."""
        node = self._schema.node(self._schema.root)
        return not isinstance(node, list) and node["type"] == "string"

    def of_json(self, value: object) -> Any:
        """Return the value of the schema for JSON. Raises SerdeError with the field if it does not fit."""
        return self._value(self._schema.root, value, "")

    def _value(self, part: Any, value: Any, path: str) -> Any:
        node = self._schema.node(part)
        if isinstance(node, list):
            return self._of_union(node, value, path)
        logical = logical_of(node)
        if logical is not None:
            return _logical(logical, value, path)
        return _OF_TYPE.get(node["type"], AvroValues._plain)(self, node, value, path)

    def _of_union(self, branches: list[Any], value: object, path: str) -> Any:
        nodes = [self._schema.node(branch) for branch in branches]
        is_tagged = sum(node["type"] in RECORDS for node in nodes) > 1
        reasons: list[str] = []
        for branch, node, inner in self._candidates(branches, nodes, value):
            try:
                converted = self._value(branch, inner, path)
            except SerdeError as error:
                reasons.append(str(error))
                continue
            return (node["name"], converted) if is_tagged and node["type"] in RECORDS else converted
        if len(reasons) == 1:
            raise SerdeError(reasons[0])
        raise misfit(value, "value of its union", path, "; ".join(reasons))

    def _candidates(self, branches: list[Any], nodes: list[Any], value: object) -> list[tuple[Any, Any, Any]]:
        """Return the branches that fit a value, each with its node and the value without its tag."""
        pairs = list(zip(branches, nodes, strict=True))
        tag, inner = _tag(value)
        if tag is not None:
            tagged_branches = [(branch, node, inner) for branch, node in pairs if tag in _names(node)]
            if tagged_branches:
                return tagged_branches
        return [(branch, node, value) for branch, node in pairs if (node["type"] == "null") is (value is None)]

    def _record(self, node: Any, value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise misfit(value, f"record {node['name']}", path)
        parts = {field["name"]: field["type"] for field in node["fields"]}
        unknown = sorted(value.keys() - parts.keys())
        if unknown:
            raise misfit(value, f"record {node['name']}", path, f"it has no field {unknown[0]}")
        absent_fields = [
            field["name"] for field in node["fields"] if field["name"] not in value and "default" not in field
        ]
        if absent_fields:
            raise misfit(value, f"record {node['name']}", path, f"it lacks the field {absent_fields[0]}")
        return {name: self._value(parts[name], part, child_path(path, name)) for name, part in value.items()}

    def _array(self, node: Any, value: Any, path: str) -> list[Any]:
        if not isinstance(value, list):
            raise misfit(value, "array", path)
        return [self._value(node["items"], item, path) for item in value]

    def _map(self, node: Any, value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise misfit(value, "map", path)
        return {key: self._value(node["values"], part, child_path(path, key)) for key, part in value.items()}

    def _enum(self, node: Any, value: Any, path: str) -> str:
        if value not in node["symbols"]:
            raise misfit(value, f"symbol of {node['name']}", path)
        return str(value)

    def _plain(self, node: Any, value: Any, path: str) -> Any:
        return of_class(value, CLASSES[node["type"]], path)


def _logical(logical: LogicalType, value: object, path: str) -> Any:
    """Return a value of a logical type, from its text or from Avro's number."""
    if logical.cls is AvroDuration:
        return _duration(value, path)
    if logical.raw is int and type(value) is int:
        try:
            return logical.read(value)
        except (ValueError, OverflowError) as error:
            raise misfit(value, logical.cls.__name__, path, str(error)) from None
    return of_class(value, logical.cls, path)


def _duration(value: object, path: str) -> AvroDuration:
    parts = list(value.values()) if isinstance(value, dict) and tuple(value) == AvroDuration._fields else value
    if not (isinstance(parts, list) and len(parts) == len(AvroDuration._fields)):
        raise misfit(value, "duration, a list of months, days and milliseconds", path)
    return AvroDuration(*(of_class(part, int, path) for part in parts))


def _tag(value: object) -> tuple[str | None, object]:
    """Return the tag of a value and the value itself: `{"name": value}` or `["name", value]`."""
    if isinstance(value, dict) and len(value) == 1:
        return next(iter(value.items()))
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str):
        return value[0], value[1]
    return None, value


def _names(node: Any) -> tuple[str, ...]:
    """Return the tags of a branch."""
    if node["type"] not in _NAMED:
        return (node["type"],)
    name = str(node["name"])
    return name, name.rpartition(".")[2]


_OF_TYPE: Final[dict[str, Callable[[AvroValues, Any, Any, str], Any]]] = {
    "record": AvroValues._record,
    "error": AvroValues._record,
    "array": AvroValues._array,
    "map": AvroValues._map,
    "enum": AvroValues._enum,
}
