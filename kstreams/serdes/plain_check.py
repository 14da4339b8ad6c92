"""`plain_check`: a compiled test whether a value is of exactly the classes of a type, so that it reads back equal.

Other values may be of the type too, such as an integer beyond 2^53 as a float, or an instance of a subclass of `int`.
They do not pass, and `TypedSerde` reads them back to compare.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, singledispatch
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import inspect

from kstreams.kernel.decoders import type_info

Check: TypeAlias = Callable[[Any], bool]


class PlainCheck(NamedTuple):
    """A test for one value, and a test for many."""

    one: Check
    all: Callable[[Iterable[Any]], bool]


Lines: TypeAlias = list[str]

_WHOLE_FLOATS = 2**53
"""The greatest integer up to which every integer is exactly a float."""


class _NotPlain(Exception):
    """Raised for a type without a compiled check."""


def plain_check(kind: object) -> PlainCheck:
    """Return the test of a type. If it cannot be compiled, no value passes.

    Examples
    --------
    >>> check = plain_check(dict[str, float | None]).one
    >>> check({"a": 1.5, "b": None, "c": 2}), check({"a": float("nan")}), check({"a": "1"}), check({1: 1.5})
    (True, False, False, False)
    """
    try:
        return _compiled(kind)
    except TypeError:  # an annotation that cannot be hashed
        return _compile(kind)


def _compile(kind: object) -> PlainCheck:
    try:
        return _Source().check(type_info(kind))
    except _NotPlain:
        return PlainCheck(_never, _never)


_compiled = lru_cache(maxsize=256)(_compile)


def _never(value: object) -> bool:
    return False


class _Source:
    """The source text of one check. It holds generated names only; objects are bound to names."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"is_json": is_json}
        self.within: tuple[type, ...] = ()  # the enclosing classes of the current field

    def check(self, info: object) -> PlainCheck:
        """Compile the tests of a type."""
        lines = self.test(info, 0)
        single = ["def one(v0):", *indented([*lines, "return True"])]
        every = ["def every(values):", *indented(["for v0 in values:", *indented(lines), "return True"])]
        namespace = dict(self.names)
        exec("\n".join([*single, *every]), namespace)  # consists of constants of this module and names from `bound`
        return PlainCheck(namespace["one"], namespace["every"])

    def test(self, info: object, depth: int) -> Lines:
        """Return the lines that return False unless `v<depth>` is of a type."""
        lines: Lines = []
        for condition, inner in merged(_cases(info, self, depth)):
            lines += [f"{'elif' if lines else 'if'} {condition}:", *indented(inner or ["pass"])]
        return [*lines, "else:", "    return False"]

    def bound(self, value: object) -> str:
        """Bind a value to a new name."""
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def of_class(self, kind: type, depth: int) -> str:
        """Return the condition that `v<depth>` is an instance of this class and of no subclass."""
        return f"type(v{depth}) is {self.bound(kind)}"


Case: TypeAlias = tuple[str, Lines]
"""A condition on a value, and the lines that test its parts."""


def indented(lines: Lines) -> Lines:
    """Indent lines by one block."""
    return [f"    {line}" for line in lines]


def merged(cases: Sequence[Case]) -> Sequence[Case]:
    """Sort cases so that those without parts, which are cheap, come first."""
    return sorted(cases, key=lambda case: len(case[1]))


@singledispatch
def _cases(info: object, source: _Source, depth: int) -> list[Case]:
    """Return the cases of a type."""
    raise _NotPlain(info)


_LEAVES: dict[type, type] = {
    inspect.BoolType: bool,
    inspect.UUIDType: uuid.UUID,
    inspect.DecimalType: decimal.Decimal,
    inspect.DateType: datetime.date,
}


def _leaf(info: object, source: _Source, depth: int) -> list[Case]:
    return [(source.of_class(_LEAVES[type(info)], depth), [])]


for _info in _LEAVES:
    _cases.register(_info, _leaf)


@_cases.register
def _(info: inspect.NoneType, source: _Source, depth: int) -> list[Case]:
    return [(f"v{depth} is None", [])]


@_cases.register
def _(info: inspect.AnyType, source: _Source, depth: int) -> list[Case]:
    return [(f"is_json(v{depth})", [])]


@_cases.register
def _(info: inspect.IntType, source: _Source, depth: int) -> list[Case]:
    _without_limits(info)
    return [(source.of_class(int, depth), [])]


@_cases.register
def _(info: inspect.FloatType, source: _Source, depth: int) -> list[Case]:
    """Accept a finite float, or an integer that a float can hold."""
    _without_limits(info)
    value = f"v{depth}"
    return [
        (f"{source.of_class(float, depth)} and {value} - {value} == 0.0", []),
        (f"{source.of_class(int, depth)} and -{_WHOLE_FLOATS} <= {value} <= {_WHOLE_FLOATS}", []),
    ]


@_cases.register
def _(info: inspect.StrType, source: _Source, depth: int) -> list[Case]:
    _without_limits(info)
    return [(source.of_class(str, depth), [])]


@_cases.register
def _(info: inspect.BytesType, source: _Source, depth: int) -> list[Case]:
    _without_limits(info)
    return [(source.of_class(bytes, depth), [])]


@_cases.register
def _(info: inspect.DateTimeType, source: _Source, depth: int) -> list[Case]:
    """Accept a datetime without time zone or in UTC. Other zones are read back as offsets."""
    _without_limits(info)
    zones = source.bound((None, datetime.UTC))
    return [(f"{source.of_class(datetime.datetime, depth)} and v{depth}.tzinfo in {zones}", [])]


@_cases.register
def _(info: inspect.EnumType, source: _Source, depth: int) -> list[Case]:
    return [(source.of_class(info.cls, depth), [])]


@_cases.register
def _(info: inspect.LiteralType, source: _Source, depth: int) -> list[Case]:
    values = source.bound(info.values)
    return [(f"{source.of_class(kind, depth)} and v{depth} in {values}", []) for kind in set(map(type, info.values))]


@_cases.register
def _(info: inspect.UnionType, source: _Source, depth: int) -> list[Case]:
    return [case for member in info.types for case in _cases(member, source, depth)]


_COLLECTIONS: dict[type, type] = {
    inspect.ListType: list,
    inspect.SetType: set,
    inspect.FrozenSetType: frozenset,
    inspect.VarTupleType: tuple,
}


def _collection(info: Any, source: _Source, depth: int) -> list[Case]:
    _without_limits(info)
    items = [f"for v{depth + 1} in v{depth}:", *indented(source.test(info.item_type, depth + 1))]
    return [(source.of_class(_COLLECTIONS[type(info)], depth), items)]


for _info in _COLLECTIONS:
    _cases.register(_info, _collection)


@_cases.register
def _(info: inspect.TupleType, source: _Source, depth: int) -> list[Case]:
    condition = f"{source.of_class(tuple, depth)} and len(v{depth}) == {len(info.item_types)}"
    return [(condition, _parts({f"v{depth}[{at}]": item for at, item in enumerate(info.item_types)}, source, depth))]


@_cases.register
def _(info: inspect.DictType, source: _Source, depth: int) -> list[Case]:
    """Accept dicts with string keys. Other keys are written as strings, so such a dict is read back."""
    _without_limits(info)
    if not isinstance(info.key_type, inspect.StrType):
        raise _NotPlain(info)
    key = f"v{depth + 1}"
    value = f"v{depth + 2}"
    pairs = [f"for {key}, {value} in v{depth}.items():"]
    tests = [*source.test(info.key_type, depth + 1), *source.test(info.value_type, depth + 2)]
    return [(source.of_class(dict, depth), [*pairs, *indented(tests)])]


@_cases.register
def _(info: inspect.TypedDictType, source: _Source, depth: int) -> list[Case]:
    """Accept a dict whose number of keys is that of its fields, so that it has no further keys."""
    absent = source.bound(object())
    value = f"v{depth + 1}"
    count = f"n{depth}"
    fields = [field for field in info.fields if field.required]
    lines = [line for field in fields for line in _entry(field, absent, source, depth)]
    lines.append(f"{count} = {len(fields)}")
    for field in info.fields:
        if not field.required:
            read, *test = _entry(field, absent, source, depth)
            lines += [read, f"if {value} is not {absent}:", *indented([f"{count} += 1", *test])]
    return [(source.of_class(dict, depth), [*lines, f"if len(v{depth}) != {count}:", "    return False"])]


def _entry(field: Any, absent: str, source: _Source, depth: int) -> Lines:
    """Read and test an entry of the dict `v<depth>`. An absent entry has no type."""
    return _parts({f"v{depth}.get({field.name!r}, {absent})": field.type}, source, depth)


def _object(info: Any, source: _Source, depth: int) -> list[Case]:
    """Accept an object with named fields. A `__post_init__` may change it, so such an object is read back."""
    kind = info.cls
    if hasattr(kind, "__post_init__") or kind in source.within:
        raise _NotPlain(info)
    source.within = (*source.within, kind)
    parts = _parts({f"v{depth}.{field.name}": field.type for field in info.fields}, source, depth)
    source.within = source.within[:-1]
    return [(source.of_class(kind, depth), parts)]


for _info in (inspect.StructType, inspect.DataclassType, inspect.NamedTupleType):
    _cases.register(_info, _object)


def _parts(kinds: dict[str, Any], source: _Source, depth: int) -> Lines:
    """Return the tests of the parts of `v<depth>`, by the expressions that read them."""
    tests: Iterator[Lines] = ([f"v{depth + 1} = {read}", *source.test(kind, depth + 1)] for read, kind in kinds.items())
    return [line for test in tests for line in test]


def _without_limits(info: msgspec.Struct) -> None:
    """Raise _NotPlain for a type with limits (`Meta(gt=0)`), which only msgspec checks."""
    limits = (name for name in info.__struct_fields__ if name not in ("item_type", "key_type", "value_type"))
    if any(getattr(info, name) is not None for name in limits):
        raise _NotPlain(info)


def is_json(value: object) -> bool:
    """True if JSON itself has such a value, so that it is read back equal without a type.

    Examples
    --------
    >>> is_json({"a": [1, "x", None]}), is_json((1,)), is_json({1: "x"}), is_json(float("inf"))
    (True, False, False, False)
    """
    test = _JSON.get(type(value))
    return test is not None and test(value)


def _always(value: object) -> bool:
    return True


_JSON: dict[type, Check] = {
    type(None): _always,
    bool: _always,
    int: _always,
    str: _always,
    float: lambda value: bool(value - value == 0.0),
    list: lambda value: all(map(is_json, value)),
    dict: lambda value: all(type(key) is str for key in value) and all(map(is_json, value.values())),
}
