"""Random schemas of Avro, values of them, and schemas that readers may have instead."""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import io
import itertools
from typing import Any

import fastavro
from hypothesis import strategies as st

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
MOMENTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1))
LOGICAL: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "date": ({"type": "int", "logicalType": "date"}, st.dates()),
    "time-micros": ({"type": "long", "logicalType": "time-micros"}, st.times()),
    "timestamp-micros": (
        {"type": "long", "logicalType": "timestamp-micros"},
        MOMENTS.map(lambda time: time.replace(tzinfo=dt.UTC)),
    ),
    "timestamp-millis": (
        {"type": "long", "logicalType": "timestamp-millis"},
        MOMENTS.map(lambda time: time.replace(tzinfo=dt.UTC, microsecond=time.microsecond // 1000 * 1000)),
    ),
    "local-timestamp-micros": ({"type": "long", "logicalType": "local-timestamp-micros"}, MOMENTS),
    "uuid": ({"type": "string", "logicalType": "uuid"}, st.uuids()),
    "decimal": (
        {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3},
        st.integers(-(10**12) + 1, 10**12 - 1).map(lambda number: decimal.Decimal(number).scaleb(-3)),
    ),
}
NAMES = ("id", "name", "amount", "note", "items", "kind")


class Schemas:
    """Draws schemas whose types all have names of their own."""

    def __init__(self, draw: Any, *, logical: bool = True) -> None:
        self._draw, self._numbers, self._has_logical = draw, itertools.count(), logical

    def record(self, depth: int = 2) -> dict[str, Any]:
        names = self._draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=4))
        fields = [{"name": name, "type": self.any(depth - 1)} for name in names]
        return {"type": "record", "name": f"R{next(self._numbers)}", "namespace": "test", "fields": fields}

    def any(self, depth: int) -> Any:
        kinds = ["primitive", "primitive", "enum", "fixed", *(["logical"] if self._has_logical else [])]
        if depth > 0:
            kinds += ["array", "map", "union", "record"]
        kind = self._draw(st.sampled_from(kinds))
        return getattr(self, f"_{kind}")(depth)

    def _primitive(self, depth: int) -> Any:
        return self._draw(st.sampled_from(PRIMITIVES))

    def _logical(self, depth: int) -> Any:
        return LOGICAL[self._draw(st.sampled_from(sorted(LOGICAL)))][0]

    def _enum(self, depth: int) -> Any:
        count = self._draw(st.integers(1, 4))
        return {"type": "enum", "name": f"E{next(self._numbers)}", "symbols": list("ABCD"[:count])}

    def _fixed(self, depth: int) -> Any:
        return {"type": "fixed", "name": f"F{next(self._numbers)}", "size": self._draw(st.integers(1, 5))}

    def _array(self, depth: int) -> Any:
        return {"type": "array", "items": self.any(depth - 1)}

    def _map(self, depth: int) -> Any:
        return {"type": "map", "values": self.any(depth - 1)}

    def _record(self, depth: int) -> Any:
        return self.record(depth)

    def _union(self, depth: int) -> Any:
        """Branches that a value tells apart."""
        branches = self._draw(st.lists(st.sampled_from(("null", "boolean", "long", "string")), unique=True))
        more = self._draw(st.sampled_from(("array", "map", "none")))
        if more != "none":
            branches.append(getattr(self, f"_{more}")(depth))
        return branches or ["null", "int"]


def values(schema: Any) -> st.SearchStrategy[Any]:
    """Values of a schema, as fastavro takes them."""
    if isinstance(schema, list):
        return st.one_of([values(branch) for branch in schema])
    if isinstance(schema, str):
        return _PRIMITIVE[schema]
    if "logicalType" in schema:
        return LOGICAL[schema["logicalType"]][1]
    of_complex: st.SearchStrategy[Any] = _COMPLEX[schema["type"]](schema)
    return of_complex


_PRIMITIVE: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=20),
    "string": st.text(max_size=20),
}

_COMPLEX: dict[str, Any] = {
    "record": lambda schema: st.fixed_dictionaries(
        {field["name"]: values(field["type"]) for field in schema["fields"]}
    ),
    "enum": lambda schema: st.sampled_from(schema["symbols"]),
    "fixed": lambda schema: st.binary(min_size=schema["size"], max_size=schema["size"]),
    "array": lambda schema: st.lists(values(schema["items"]), max_size=3),
    "map": lambda schema: st.dictionaries(st.text(max_size=5), values(schema["values"]), max_size=3),
}


@st.composite
def schema_and_values(draw: Any) -> tuple[Any, list[Any]]:
    """A record and some values of it."""
    schema = Schemas(draw).record()
    return schema, draw(st.lists(values(schema), min_size=1, max_size=4))


@st.composite
def schema_pairs(draw: Any) -> tuple[Any, Any, Any]:
    """A writer's schema, one that a reader may have in its place, and a value of the first."""
    written = Schemas(draw, logical=False).record()
    wanted = copy.deepcopy(written)
    for _ in range(draw(st.integers(0, 3))):
        _change(draw, wanted)
    return written, wanted, draw(values(written))


_WIDER = {"int": ("long", "float", "double"), "long": ("float", "double"), "float": ("double",), "string": ("bytes",),
          "bytes": ("string",)}  # fmt: skip


def _change(draw: Any, record: Any) -> None:
    """Change one field as schemas evolve, or as they must not."""
    changes = (_drop, _add, _rename, _promote, _other, _optional, _symbols, _inner, _in_another_order)
    draw(st.sampled_from(changes))(draw, record["fields"], draw(st.sampled_from(record["fields"] or [{"type": ""}])))


def _drop(draw: Any, fields: list[Any], field: Any) -> None:
    if field in fields:
        fields.remove(field)


def _add(draw: Any, fields: list[Any], field: Any) -> None:
    default = {"default": draw(st.integers(-5, 5))} if draw(st.booleans()) else {}
    fields.append({"name": _new_name(fields), "type": draw(st.sampled_from(("int", "long"))), **default})


def _rename(draw: Any, fields: list[Any], field: Any) -> None:
    if field in fields:
        field.update(aliases=[field["name"]], name=f"renamed_{field['name']}")


def _promote(draw: Any, fields: list[Any], field: Any) -> None:
    if isinstance(field["type"], str):
        field["type"] = draw(st.sampled_from(_WIDER.get(field["type"], (field["type"],))))


def _other(draw: Any, fields: list[Any], field: Any) -> None:
    field["type"] = draw(st.sampled_from(PRIMITIVES))


def _optional(draw: Any, fields: list[Any], field: Any) -> None:
    if not isinstance(field["type"], list):
        field["type"] = ["null", "string" if field["type"] == "null" else field["type"]]


def _symbols(draw: Any, fields: list[Any], field: Any) -> None:
    if isinstance(field["type"], dict) and field["type"]["type"] == "enum":
        field["type"].update(symbols=["B", "A", "Z"], **({"default": "Z"} if draw(st.booleans()) else {}))


def _inner(draw: Any, fields: list[Any], field: Any) -> None:
    if isinstance(field["type"], dict) and field["type"]["type"] == "record":
        _change(draw, field["type"])


def _in_another_order(draw: Any, fields: list[Any], field: Any) -> None:
    fields[:] = draw(st.permutations(fields))


def _new_name(fields: list[Any]) -> str:
    names = {field["name"] for field in fields}
    return next(name for name in map("new{}".format, itertools.count()) if name not in names)


def by_fastavro(schema: Any, value: Any) -> bytes:
    """The bytes that fastavro writes."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(copy.deepcopy(schema)), value)
    return out.getvalue()


def read_by_fastavro(data: bytes, written: Any, wanted: Any = None) -> Any:
    """What fastavro reads."""
    parsed = fastavro.parse_schema(copy.deepcopy(written))
    reader = None if wanted is None else fastavro.parse_schema(copy.deepcopy(wanted))
    return fastavro.schemaless_reader(io.BytesIO(data), parsed, reader)
