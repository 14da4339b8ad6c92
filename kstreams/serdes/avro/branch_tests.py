"""`BranchTests`: the conditions by which a value of a union is told to be of one branch."""

from __future__ import annotations

from typing import Any

from kstreams.serdes.avro.kinds import Kind
from kstreams.serdes.avro.logical import logical_of
from kstreams.serdes.avro.mapping import CLASSES, COLLECTIONS, is_raw
from kstreams.serdes.avro.schema import RECORDS
from kstreams.serdes.avro.source import Source

_BITS = {"int": 31, "long": 63}
"""Of integers, without their sign."""


class BranchTests:
    """Writes the conditions.

    Parameters
    ----------
    source : Source
        Holds the names of classes and symbols.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    def condition(self, node: Any, nodes: list[Any], kind: Kind, value: str) -> tuple[str, str]:
        """When a value is one of a branch, and what then stands for it."""
        test = self._test(node, nodes, kind, value)
        if node["type"] in RECORDS and kind.is_plain:
            names = self._source.bound((node["name"], node["name"].rpartition(".")[2]))
            is_tagged = f"type({value}) is tuple and len({value}) == 2 and {value}[0] in {names}"
            inner = self._source.variable()
            return (f"({inner} := {value}[1] if {is_tagged} else {value} if {test} else MISSING) is not MISSING", inner)
        return test, value

    def _test(self, node: Any, nodes: list[Any], kind: Kind, value: str) -> str:
        """The condition that a value is one of a branch, and of no other."""
        logical, name = logical_of(node), node["type"]
        if logical is not None and not is_raw(kind, logical):
            return self._test_of_class(logical.cls, value)
        if name in _BITS:
            return f"type({value}) is int and {-(1 << _BITS[name])} <= {value} < {1 << _BITS[name]}"
        if name in ("float", "double"):
            has_int = any(other["type"] in _BITS for other in nodes)
            return f"type({value}) is float" if has_int else f"type({value}) in {self._source.bound((float, int))}"
        if name in RECORDS:
            return self._test_of_record(node, kind, value)
        if name == "enum" and not kind.is_enum:
            return f"type({value}) is str and {value} in {self._source.bound(frozenset(node['symbols']))}"
        return self._test_of_class(kind.base if kind.is_enum or kind.base in COLLECTIONS else CLASSES[name], value)

    def _test_of_class(self, cls: type, value: str) -> str:
        return f"type({value}) is {self._source.bound(cls)}"

    def _test_of_record(self, node: Any, kind: Kind, value: str) -> str:
        if kind.shape is not None and not kind.shape.is_dict:
            return self._test_of_class(kind.shape.cls, value)
        names = frozenset(field["name"] for field in node["fields"])
        required = frozenset(field["name"] for field in node["fields"] if "default" not in field)
        sets = self._source.bound(required), self._source.bound(names)
        return f"type({value}) is dict and {sets[0]} <= {value}.keys() <= {sets[1]}"
