"""`plain_check`: a compiled test whether a value is plainly of a type, so that what is written of it reads back equal.

The test asks for the very classes that the type names. Whatever else may be of the type (an integer beyond 2^53 as a
float, a class of the user's that inherits from `int`) does not pass: such a value is read back to see (`TypedSerde`).
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

from kstreams.decoders import type_info

Check: TypeAlias = Callable[[Any], bool]


class PlainCheck(NamedTuple):
    """Whether a value is plainly of a type, and whether all of many are."""

    one: Check
    all: Callable[[Iterable[Any]], bool]


Lines: TypeAlias = list[str]

_WHOLE_FLOATS = 2**53
"""Up to here each integer is a float too."""


class _NotPlain(Exception):
    """A type, or a part of one, that no check is compiled for."""


def plain_check(kind: Any) -> PlainCheck:
    """The test of a type; of a type that it cannot be compiled for, a test that no value passes.

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


def _compile(kind: Any) -> PlainCheck:
    try:
        return _Source().check(type_info(kind))
    except _NotPlain:
        return PlainCheck(_never, _never)


_compiled = lru_cache(maxsize=256)(_compile)


def _never(value: Any) -> bool:
    return False


class _Source:
    """The text of one check under construction. It holds names made here alone; all else is bound by name."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"is_json": is_json}
        self.within: tuple[type, ...] = ()  # the classes whose fields are being written

    def check(self, info: Any) -> PlainCheck:
        """The functions that tell whether values are plainly of a type."""
        lines = self.test(info, 0)
        one = ["def one(v0):", *indented([*lines, "return True"])]
        every = ["def every(values):", *indented(["for v0 in values:", *indented(lines), "return True"])]
        namespace = dict(self.names)
        exec("\n".join([*one, *every]), namespace)  # made of constants of this module and names of `bound` alone
        return PlainCheck(namespace["one"], namespace["every"])

    def test(self, info: Any, depth: int) -> Lines:
        """The lines that return False unless `v<depth>` is of a type."""
        lines: Lines = []
        for condition, inner in merged(_cases(info, self, depth)):
            lines += [f"{'elif' if lines else 'if'} {condition}:", *indented(inner or ["pass"])]
        return [*lines, "else:", "    return False"]

    def bound(self, value: Any) -> str:
        """A name for a value."""
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def of_class(self, kind: type, depth: int) -> str:
        """The condition that `v<depth>` is of this class and none that inherits from it."""
        return f"type(v{depth}) is {self.bound(kind)}"


Case: TypeAlias = tuple[str, Lines]
"""A condition on a value, and the lines that look at its parts."""


def indented(lines: Lines) -> Lines:
    """Lines within a block."""
    return [f"    {line}" for line in lines]


def merged(cases: Sequence[Case]) -> Sequence[Case]:
    """Cases without parts first: they are cheap."""
    return sorted(cases, key=lambda case: len(case[1]))


@singledispatch
def _cases(info: Any, source: _Source, depth: int) -> list[Case]:
    """What a value of a type may be."""
    raise _NotPlain(info)


_LEAVES: dict[type, type] = {
    inspect.BoolType: bool,
    inspect.UUIDType: uuid.UUID,
    inspect.DecimalType: decimal.Decimal,
    inspect.DateType: datetime.date,
}


def _leaf(info: Any, source: _Source, depth: int) -> list[Case]:
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
    """A float that is finite, or an integer that is a float too."""
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
    """Without a time zone, or in UTC: what is in another zone is read back with its offset alone."""
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
    """By text: other keys become text, and are read back to see."""
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
    """A dict with so many keys as there are fields in it: then it has no others."""
    missing = source.bound(object())
    value = f"v{depth + 1}"
    count = f"n{depth}"
    fields = [field for field in info.fields if field.required]
    lines = [line for field in fields for line in _entry(field, missing, source, depth)]
    lines.append(f"{count} = {len(fields)}")
    for field in info.fields:
        if not field.required:
            read, *test = _entry(field, missing, source, depth)
            lines += [read, f"if {value} is not {missing}:", *indented([f"{count} += 1", *test])]
    return [(source.of_class(dict, depth), [*lines, f"if len(v{depth}) != {count}:", "    return False"])]


def _entry(field: Any, missing: str, source: _Source, depth: int) -> Lines:
    """Read an entry of the dict `v<depth>`, and test it; what is missing is of no type."""
    return _parts({f"v{depth}.get({field.name!r}, {missing})": field.type}, source, depth)


def _object(info: Any, source: _Source, depth: int) -> list[Case]:
    """An object with named fields. What runs when such an object is made may change it: then it is read back to see."""
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
    """The tests of the parts of `v<depth>`, each given by how it is read."""
    tests: Iterator[Lines] = ([f"v{depth + 1} = {read}", *source.test(kind, depth + 1)] for read, kind in kinds.items())
    return [line for test in tests for line in test]


def _without_limits(info: msgspec.Struct) -> None:
    """A type with limits (`Meta(gt=0)`) is no plain one: msgspec alone looks at them."""
    limits = (name for name in info.__struct_fields__ if name not in ("item_type", "key_type", "value_type"))
    if any(getattr(info, name) is not None for name in limits):
        raise _NotPlain(info)


def is_json(value: Any) -> bool:
    """Whether a value is one that JSON itself has: it is read back as it is without a type.

    Examples
    --------
    >>> is_json({"a": [1, "x", None]}), is_json((1,)), is_json({1: "x"}), is_json(float("inf"))
    (True, False, False, False)
    """
    test = _JSON.get(type(value))
    return test is not None and test(value)


def _always(value: Any) -> bool:
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
