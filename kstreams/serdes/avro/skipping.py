"""`Skipping`: what moves past values that nobody reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kstreams.serdes.avro.reading_source import ReadingSource
from kstreams.serdes.avro.schema import AvroSchema

_SIZES: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}


class Skipping:
    """Writes lines that move past values of a schema.

    Parameters
    ----------
    schema : AvroSchema
        The writer's.
    source : ReadingSource
    """

    def __init__(self, schema: AvroSchema, source: ReadingSource) -> None:
        self._schema, self._source = schema, source
        self._functions: dict[int, str] = {}

    def skip(self, part: Any) -> None:
        """Write what moves past a value."""
        node = self._schema.node(part)
        if isinstance(node, list):
            self._union(node)
        else:
            _BY_TYPE[node["type"]](self, node)

    def _union(self, branches: list[Any]) -> None:
        number = self._source.number()
        for place, branch in enumerate(branches):
            with self._source.block(f"{'elif' if place else 'if'} {number} == {place}"):
                self.skip(branch)
        self._source.check_branch(number)

    def _fixed(self, node: Any) -> None:
        self._source.add(f"p += {node.get('size', _SIZES.get(node['type']))}")

    def _number(self, node: Any) -> None:
        self._source.pass_number()

    def _slice(self, node: Any) -> None:
        self._source.add(f"p = {self._source.length()}")

    def _array(self, node: Any) -> None:
        with self._source.items():
            if self._schema.takes_no_bytes(node["items"]):
                self._source.add("break")
            else:
                self.skip(node["items"])

    def _map(self, node: Any) -> None:
        with self._source.items():
            self._slice(node)
            self.skip(node["values"])

    def _record(self, node: Any) -> None:
        if not self._schema.holds_itself(node):
            for field in node["fields"]:
                self.skip(field["type"])
            return
        if id(node) not in self._functions:
            name = self._functions[id(node)] = f"skip{len(self._functions)}"
            with self._source.apart(), self._source.block(f"def {name}(d, p)"):
                for field in node["fields"]:
                    self.skip(field["type"])
                self._source.add("return p")
        self._source.add(f"p = {self._functions[id(node)]}(d, p)")


_BY_TYPE: Final[dict[str, Callable[[Skipping, Any], None]]] = {
    "null": Skipping._fixed,
    "boolean": Skipping._fixed,
    "float": Skipping._fixed,
    "double": Skipping._fixed,
    "fixed": Skipping._fixed,
    "int": Skipping._number,
    "long": Skipping._number,
    "enum": Skipping._number,
    "string": Skipping._slice,
    "bytes": Skipping._slice,
    "array": Skipping._array,
    "map": Skipping._map,
    "record": Skipping._record,
    "error": Skipping._record,
}
