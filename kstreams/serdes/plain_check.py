"""`plain_check`: a compiled test whether a value consists of exactly the classes of a type.

Such a value reads back equal. Other values may fit the type too, such as an integer beyond 2^53 as a float, or an
instance of a subclass of `int`. They do not pass the test, and `TypedSerde` reads them back to compare.
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
from kstreams.serdes.compiled_source import CompiledSource, indented

Check: TypeAlias = Callable[[Any], bool]


class PlainCheck(NamedTuple):
    """A test for one value, and a test for many values."""

    one: Check
    all: Callable[[Iterable[Any]], bool]


Lines: TypeAlias = list[str]

_PART_ATTRIBUTES = ("item_type", "key_type", "value_type")
_MAX_EXACT_INTEGER = 2**53
"""All integers up to this one have an equal float."""


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
        return _cached_compile(kind)
    except TypeError:  # an annotation that cannot be hashed
        return _compile(kind)


def _compile(kind: object) -> PlainCheck:
    try:
        return _CheckSource().check(type_info(kind))
    except _NotPlain:
        return PlainCheck(_never, _never)


_cached_compile = lru_cache(maxsize=256)(_compile)


def _never(value: object) -> bool:
    return False


class _CheckSource(CompiledSource):
    """The source text of one check."""

    def __init__(self) -> None:
        super().__init__()
        self.names["is_json"] = is_json
        self.enclosing_classes: tuple[type, ...] = ()  # of the current field

    def check(self, info: object) -> PlainCheck:
        """Compile the tests of a type."""
        lines = self.test(info, 0)
        self.lines += ["def one(v0):", *indented([*lines, "return True"])]
        self.lines += ["def every(values):", *indented(["for v0 in values:", *indented(lines), "return True"])]
        return PlainCheck(self.function("one"), self.function("every"))

    def test(self, info: object, depth: int) -> Lines:
        """Return the source lines that return False unless `v<depth>` is of a type."""
        lines: Lines = []
        for condition, tests in _cheapest_first(_cases(info, self, depth)):
            lines += [f"{'elif' if lines else 'if'} {condition}:", *indented(tests or ["pass"])]
        return [*lines, "else:", "    return False"]

    def is_exactly(self, kind: type, depth: int) -> str:
        """Return the condition that `v<depth>` is an instance of this class and of no subclass."""
        return f"type(v{depth}) is {self.bound(kind)}"


Case: TypeAlias = tuple[str, Lines]
"""A condition on a value, and the lines that test its parts."""


def _cheapest_first(cases: Sequence[Case]) -> Sequence[Case]:
    """Sort cases by the number of lines that test their parts."""
    return sorted(cases, key=lambda case: len(case[1]))


@singledispatch
def _cases(info: object, source: _CheckSource, depth: int) -> list[Case]:
    """Return the cases of a type."""
    raise _NotPlain(info)


_SCALARS: dict[type, type] = {
    inspect.BoolType: bool,
    inspect.UUIDType: uuid.UUID,
    inspect.DecimalType: decimal.Decimal,
    inspect.DateType: datetime.date,
}


def _scalar(info: object, source: _CheckSource, depth: int) -> list[Case]:
    return [(source.is_exactly(_SCALARS[type(info)], depth), [])]


for _info in _SCALARS:
    _cases.register(_info, _scalar)


@_cases.register
def _(info: inspect.NoneType, source: _CheckSource, depth: int) -> list[Case]:
    return [(f"v{depth} is None", [])]


@_cases.register
def _(info: inspect.AnyType, source: _CheckSource, depth: int) -> list[Case]:
    return [(f"is_json(v{depth})", [])]


@_cases.register
def _(info: inspect.IntType, source: _CheckSource, depth: int) -> list[Case]:
    _refuse_limits(info)
    return [(source.is_exactly(int, depth), [])]


@_cases.register
def _(info: inspect.FloatType, source: _CheckSource, depth: int) -> list[Case]:
    """Accept a finite float, or an integer that a float can hold."""
    _refuse_limits(info)
    value = f"v{depth}"
    return [
        (f"{source.is_exactly(float, depth)} and {value} - {value} == 0.0", []),
        (f"{source.is_exactly(int, depth)} and -{_MAX_EXACT_INTEGER} <= {value} <= {_MAX_EXACT_INTEGER}", []),
    ]


@_cases.register
def _(info: inspect.StrType, source: _CheckSource, depth: int) -> list[Case]:
    _refuse_limits(info)
    return [(source.is_exactly(str, depth), [])]


@_cases.register
def _(info: inspect.BytesType, source: _CheckSource, depth: int) -> list[Case]:
    _refuse_limits(info)
    return [(source.is_exactly(bytes, depth), [])]


@_cases.register
def _(info: inspect.DateTimeType, source: _CheckSource, depth: int) -> list[Case]:
    """Accept a datetime without time zone or in UTC. Other zones are read back as offsets."""
    _refuse_limits(info)
    zones = source.bound((None, datetime.UTC))
    return [(f"{source.is_exactly(datetime.datetime, depth)} and v{depth}.tzinfo in {zones}", [])]


@_cases.register
def _(info: inspect.EnumType, source: _CheckSource, depth: int) -> list[Case]:
    return [(source.is_exactly(info.cls, depth), [])]


@_cases.register
def _(info: inspect.LiteralType, source: _CheckSource, depth: int) -> list[Case]:
    values = source.bound(info.values)
    return [(f"{source.is_exactly(kind, depth)} and v{depth} in {values}", []) for kind in set(map(type, info.values))]


@_cases.register
def _(info: inspect.UnionType, source: _CheckSource, depth: int) -> list[Case]:
    return [case for member in info.types for case in _cases(member, source, depth)]


_COLLECTIONS: dict[type, type] = {
    inspect.ListType: list,
    inspect.SetType: set,
    inspect.FrozenSetType: frozenset,
    inspect.VarTupleType: tuple,
}


def _collection(info: Any, source: _CheckSource, depth: int) -> list[Case]:
    _refuse_limits(info)
    items = [f"for v{depth + 1} in v{depth}:", *indented(source.test(info.item_type, depth + 1))]
    return [(source.is_exactly(_COLLECTIONS[type(info)], depth), items)]


for _info in _COLLECTIONS:
    _cases.register(_info, _collection)


@_cases.register
def _(info: inspect.TupleType, source: _CheckSource, depth: int) -> list[Case]:
    condition = f"{source.is_exactly(tuple, depth)} and len(v{depth}) == {len(info.item_types)}"
    return [
        (condition, _parts({f"v{depth}[{index}]": item for index, item in enumerate(info.item_types)}, source, depth))
    ]


@_cases.register
def _(info: inspect.DictType, source: _CheckSource, depth: int) -> list[Case]:
    """Accept dicts with string keys. Other keys are written as strings, so dicts with such keys are read back."""
    _refuse_limits(info)
    if not isinstance(info.key_type, inspect.StrType):
        raise _NotPlain(info)
    key = f"v{depth + 1}"
    value = f"v{depth + 2}"
    pairs = [f"for {key}, {value} in v{depth}.items():"]
    tests = [*source.test(info.key_type, depth + 1), *source.test(info.value_type, depth + 2)]
    return [(source.is_exactly(dict, depth), [*pairs, *indented(tests)])]


@_cases.register
def _(info: inspect.TypedDictType, source: _CheckSource, depth: int) -> list[Case]:
    """Accept a dict with as many keys as its type has present fields, so that it has no further keys."""
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
    return [(source.is_exactly(dict, depth), [*lines, f"if len(v{depth}) != {count}:", "    return False"])]


def _entry(field: Any, absent: str, source: _CheckSource, depth: int) -> Lines:
    """Read and test an entry of the dict `v<depth>`. An absent entry has no type."""
    return _parts({f"v{depth}.get({field.name!r}, {absent})": field.type}, source, depth)


def _object(info: Any, source: _CheckSource, depth: int) -> list[Case]:
    """Accept an object with named fields. A `__post_init__` may change an object, so such objects are read back."""
    kind = info.cls
    if hasattr(kind, "__post_init__") or kind in source.enclosing_classes:
        raise _NotPlain(info)
    source.enclosing_classes = (*source.enclosing_classes, kind)
    parts = _parts({f"v{depth}.{field.name}": field.type for field in info.fields}, source, depth)
    source.enclosing_classes = source.enclosing_classes[:-1]
    return [(source.is_exactly(kind, depth), parts)]


for _info in (inspect.StructType, inspect.DataclassType, inspect.NamedTupleType):
    _cases.register(_info, _object)


def _parts(kinds: dict[str, Any], source: _CheckSource, depth: int) -> Lines:
    """Return the tests of the parts of `v<depth>`, by the expressions that read them."""
    tests: Iterator[Lines] = ([f"v{depth + 1} = {read}", *source.test(kind, depth + 1)] for read, kind in kinds.items())
    return [line for test in tests for line in test]


def _refuse_limits(info: msgspec.Struct) -> None:
    """Raise _NotPlain for a type with limits (`Meta(gt=0)`), which only msgspec checks."""
    if limits_in(info):
        raise _NotPlain(info)


def limits_in(info: msgspec.Struct) -> dict[str, Any]:
    """Return the limits of `msgspec.Meta` in msgspec's description of a type.

    Examples
    --------
    >>> from typing import Annotated
    >>> limits_in(type_info(Annotated[int, msgspec.Meta(gt=0)]))
    {'gt': 0}
    """
    attributes = {name: getattr(info, name) for name in info.__struct_fields__ if name not in _PART_ATTRIBUTES}
    return {name: value for name, value in attributes.items() if value is not None}


def is_json(value: object) -> bool:
    """True if a value consists of JSON's own types, so that it is read back equal without a type.

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
