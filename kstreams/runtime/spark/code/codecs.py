"""`Codecs`: the texts that turn bytes of topics into typed columns and back, and the types of JSON that they name."""

from __future__ import annotations

import re
from functools import reduce
from typing import NamedTuple

from kstreams.runtime.spark.code.json_types import JsonType, json_type_of
from kstreams.runtime.spark.code.unsayable import Unsayable
from kstreams.serdes import BoolSerde, BytesSerde, IntSerde, Serde, StringSerde
from kstreams.serdes.json import JsonSerde


class _Codec(NamedTuple):
    """The texts for the values of one serde; `{}` is the column, in quotes if it is a name."""

    decode: str
    encode: str


_CODECS: dict[type[Serde], _Codec] = {
    StringSerde: _Codec("text({})", '{}.cast("binary")'),
    IntSerde: _Codec("long({})", "long_bytes({})"),
    BoolSerde: _Codec("boolean({})", "boolean_bytes({})"),
    BytesSerde: _Codec("{}", "{}"),
}


class NamedType(NamedTuple):
    """A type of JSON values in the program: its name, and the type of Spark."""

    name: str
    of_values: JsonType

    @property
    def predicate(self) -> str | None:
        """The name of the function that checks a value; None if there is nothing to check."""
        return f"is_{self.name.lower()}" if self.of_values.conditions("value") else None

    @property
    def rewriting(self) -> str | None:
        """The name of the function that gives a value its texts as msgspec writes them; None if they are so."""
        return None if self.of_values.normal is None else f"normal_{self.name.lower()}"


class Codecs:
    """The texts for decoding and encoding in one program."""

    def __init__(self) -> None:
        self._types: dict[object, NamedType] = {}

    @property
    def types(self) -> list[NamedType]:
        """The types of JSON that the texts name."""
        return list(self._types.values())

    def decoded(self, serde: Serde, column: str) -> str:
        """Return the text that decodes a column of bytes, given as `F.col("value")`.

        Raises
        ------
        Unsayable
            If Spark has no function for this.
        """
        return reduce(lambda text, step: step.format(text), self.decoding(serde), column)

    def decoding(self, serde: Serde) -> list[str]:
        """Return the texts that decode bytes one after the other; `{}` is the column.

        Each belongs into a DataFrame of its own, since Spark would repeat the first wherever the second reads it.
        """
        if type(serde) in _CODECS:
            return [] if type(serde) is BytesSerde else [_CODECS[type(serde)].decode]
        named = self._json(serde)
        predicate = "" if named.predicate is None else f", {named.predicate}"
        rewriting = [] if named.rewriting is None else [f"{named.rewriting}({{}})"]
        return [f"from_json({{}}, {named.name}{predicate})", *rewriting]

    def encoded(self, serde: Serde, column: str, *, is_checked: bool) -> str:
        """Return the text that encodes a typed column; a value that was decoded needs no check."""
        if type(serde) in _CODECS:
            return _CODECS[type(serde)].encode.format(column)
        named = self._json(serde)
        if not named.of_values.ddl.startswith(("struct", "array", "map")):
            raise Unsayable("Spark writes structs, lists and dicts as JSON, not single values")
        if is_checked or named.predicate is None:
            return f"F.to_json({column}, TO_JSON)"
        return f"F.to_json(checked({column}, {named.predicate}), TO_JSON)"

    def _json(self, serde: Serde) -> NamedType:
        if type(serde) is not JsonSerde:
            raise Unsayable(f"{type(serde).__name__} has no form in Spark's own functions")
        named = self._types.get(serde.type)
        if named is None:
            named = NamedType(self._new_name(serde.type), json_type_of(serde.type))
            self._types[serde.type] = named
        return named

    def _new_name(self, kind: object) -> str:
        name = _constant_name(getattr(kind, "__name__", "value"))
        taken = {named.name for named in self._types.values()}
        return next(new for new in _numbered(name) if new not in taken)


def _constant_name(name: str) -> str:
    """Return the name of a class as the name of a constant.

    Examples
    --------
    >>> _constant_name("PriceRange")
    'PRICE_RANGE'
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"\W", "_", words, flags=re.ASCII).upper().strip("_") or "VALUE"


def _numbered(name: str) -> list[str]:
    return [name, *(f"{name}_{number}" for number in range(2, 1_000))]
