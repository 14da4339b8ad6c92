"""`Kind`: a Python annotation in the form that Avro's readers and writers use."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Annotated, Any, Final, Literal, Union

import msgspec

from kstreams.errors import SerdeError
from kstreams.serdes.pydantic_models import is_model

MISSING: Final = msgspec.NODEFAULT


@dataclass(frozen=True)
class FieldOfClass:
    """A field of a class.

    Parameters
    ----------
    name : str
        The name in schemas.
    attribute : str
        The name in objects.
    kind : Kind
    default : object
        The default; `MISSING` if there is none, or a function creates it.
    has_default : bool
        True if an object can be created without the field.
    keyword : str
        The keyword argument of the class.
    """

    name: str
    attribute: str
    kind: Kind
    default: Any
    has_default: bool
    keyword: str


@dataclass(frozen=True)
class ClassShape:
    """A class whose objects are records.

    Parameters
    ----------
    cls : type
    fields : mapping of str to FieldOfClass
        The fields by their names in schemas, in order of declaration.
    make : callable
        Creates an object from keyword arguments.
    is_dict : bool
        True if objects are dicts, as for a TypedDict.
    positional : bool
        True if the class takes its fields as positional arguments in their order.
    is_bare : bool
        True if objects can be created by setting their fields. For a frozen dataclass, this takes half the time of
        `__init__`.
    """

    cls: type
    fields: Mapping[str, FieldOfClass]
    make: Callable[..., Any]
    is_dict: bool = False
    positional: bool = False
    is_bare: bool = False


@dataclass(frozen=True, eq=False)
class Kind:
    """A parsed annotation.

    Parameters
    ----------
    hint : object
        The whole annotation.
    base : object
        The class without its arguments; `Union`, `Literal`, or `Any`.
    arguments : tuple of Kind
        The kinds in brackets; for a union its members.
    extra : mapping
        The `extra` of `Annotated[..., msgspec.Meta(extra=...)]`.
    is_limited : bool
        True if msgspec checks more than the class of a value, as for `Meta(gt=0)`.
    """

    hint: Any
    base: Any
    arguments: tuple[Kind, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    is_limited: bool = False
    is_naive: bool = False

    @property
    def is_plain(self) -> bool:
        """True if the annotation does not restrict the value."""
        return self.base is Any

    @cached_property
    def shape(self) -> ClassShape | None:
        """The fields and the constructor of a class of records; None for other classes."""
        return _shape(self.base)

    @property
    def is_enum(self) -> bool:
        return isinstance(self.base, type) and issubclass(self.base, enum.Enum)

    def __str__(self) -> str:
        return getattr(self.hint, "__name__", str(self.hint))

    def resolved(self) -> Kind:
        """Resolve all classes within the kind, and return it: names in annotations may be unknown where it is sent."""
        pending = [self]
        visited = set[int]()
        while pending:
            kind = pending.pop()
            if id(kind) not in visited:
                visited.add(id(kind))
                fields = kind.shape.fields.values() if kind.shape else ()
                pending += [*kind.arguments, *(field.kind for field in fields)]
        return self


PLAIN: Final = Kind(Any, Any)


def kind_of(hint: object) -> Kind:
    """Parse an annotation."""
    if isinstance(hint, typing.NewType):
        return kind_of(hint.__supertype__)
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin is None:
        return PLAIN if hint in (Any, object) else Kind(hint, type(None) if hint is None else hint, _bare(hint))
    make = _OF_FORM.get(origin)
    return _generic(hint, origin, arguments) if make is None else make(hint, arguments)


def _generic(hint: object, origin: object, arguments: tuple[Any, ...]) -> Kind:
    if not isinstance(origin, type):
        raise SerdeError(f"{hint!r} has no counterpart in Avro")
    if origin is tuple and (len(arguments) != 2 or arguments[1] is not Ellipsis):
        raise SerdeError(f"{hint!r} has no counterpart in Avro: its arrays hold any number of items of one type")
    return Kind(
        hint,
        _CONCRETE.get(origin, origin),
        tuple(kind_of(argument) for argument in arguments if argument is not Ellipsis),
    )


def _bare(hint: object) -> tuple[Kind, ...]:
    """Return the arguments of `list`, `dict` and similar classes without brackets."""
    if hint is dict:
        return Kind(str, str), PLAIN
    return (PLAIN,) if hint in (list, tuple, set, frozenset) else ()


def _union(hint: object, arguments: tuple[Any, ...]) -> Kind:
    return Kind(hint, Union, tuple(map(kind_of, arguments)))


def _literal(hint: object, arguments: tuple[Any, ...]) -> Kind:
    return Kind(hint, Literal, is_limited=True)


_CONCRETE: dict[object, object] = {
    **dict.fromkeys((typing.get_origin(typing.Sequence[int]), typing.get_origin(typing.Collection[int])), list),
    typing.get_origin(typing.Mapping[str, int]): dict,
}
_CHECKED = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length")


def _annotated(hint: object, arguments: tuple[Any, ...]) -> Kind:
    inner = kind_of(arguments[0])
    metadata = arguments[1:]
    extra = dict(inner.extra)
    is_limited = inner.is_limited
    is_naive = inner.is_naive
    for meta in (annotation for annotation in metadata if isinstance(annotation, msgspec.Meta)):
        extra |= meta.extra or {}
        is_limited |= any(getattr(meta, name) is not None for name in _CHECKED)
        is_naive |= meta.tz is False
    return Kind(hint, inner.base, inner.arguments, extra, is_limited, is_naive)


_OF_FORM: dict[object, Callable[[object, tuple[object, ...]], Kind]] = {
    Annotated: _annotated,
    Union: _union,
    types.UnionType: _union,
    Literal: _literal,
}


@cache
def _shape(cls: object) -> ClassShape | None:
    for is_one, shape in _SHAPES:
        if isinstance(cls, type) and is_one(cls):
            class_shape: ClassShape = shape(cls)
            return class_shape
    return None


def _of_field(name: str, hint: object) -> Kind:
    try:
        return kind_of(hint)
    except SerdeError as error:
        raise SerdeError(f"field {name}: {error}") from None


def _hints(cls: Any) -> dict[str, object]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise SerdeError(f"{cls.__name__} names a type that is not known: {error}") from error


def _struct(cls: Any) -> ClassShape:
    hints = _hints(cls)
    fields = {
        field.encode_name: FieldOfClass(
            field.encode_name,
            field.name,
            _of_field(field.name, hints[field.name]),
            field.default,
            not field.required,
            field.name,
        )
        for field in msgspec.structs.fields(cls)
    }
    return ClassShape(cls, fields, cls, positional=_is_positional(cls))


def _is_positional(cls: Any) -> bool:
    """Return True if a class takes all its fields as positional arguments."""
    parameters = inspect.signature(cls).parameters.values()
    return all(parameter.kind is parameter.POSITIONAL_OR_KEYWORD for parameter in parameters)


def _dataclass(cls: Any) -> ClassShape:
    hints = _hints(cls)
    init_fields = [field for field in dataclasses.fields(cls) if field.init]
    fields = {
        field.name: FieldOfClass(
            field.name,
            field.name,
            _of_field(field.name, hints[field.name]),
            MISSING if field.default is dataclasses.MISSING else field.default,
            field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING,
            field.name,
        )
        for field in init_fields
    }
    return ClassShape(cls, fields, cls, positional=_is_positional(cls), is_bare=_is_bare(cls, len(fields)))


def _is_bare(cls: Any, count: int) -> bool:
    """Return True if the generated `__init__` of a frozen dataclass only sets its fields."""
    parameters = cls.__dataclass_params__
    is_generated = parameters.frozen and parameters.init and "__init__" in cls.__dict__
    is_plain = cls.__new__ is object.__new__ and not hasattr(cls, "__post_init__") and cls.__dictoffset__ != 0
    return is_generated and is_plain and _has_no_slots(cls) and count == len(cls.__dataclass_fields__)


def _has_no_slots(cls: Any) -> bool:
    return not any(base.__dict__.get("__slots__") for base in cls.__mro__)


def _typed_dict(cls: Any) -> ClassShape:
    hints = typing.get_type_hints(cls)
    required = cls.__required_keys__
    fields = {
        name: FieldOfClass(name, name, _of_field(name, hint), MISSING, name not in required, name)
        for name, hint in hints.items()
    }
    return ClassShape(cls, fields, dict, is_dict=True)


def _named_tuple(cls: Any) -> ClassShape:
    hints = _hints(cls)
    defaults = cls._field_defaults
    fields = {
        name: FieldOfClass(
            name, name, _of_field(name, hints.get(name, Any)), defaults.get(name, MISSING), name in defaults, name
        )
        for name in cls._fields
    }
    return ClassShape(cls, fields, cls, positional=True)


def _model(cls: Any) -> ClassShape:
    hints = _hints(cls)
    fields = {}
    for name, info in cls.model_fields.items():
        has_default = not info.is_required()
        default = MISSING if info.is_required() or info.default_factory is not None else info.default
        key = info.alias or name
        fields[key] = FieldOfClass(key, name, _of_field(name, hints[name]), default, has_default, key)
    return ClassShape(cls, fields, partial(_validated, cls))


def _validated(cls: Any, **values: Any) -> Any:
    return cls.model_validate(values)


_SHAPES: tuple[tuple[Callable[[Any], bool], Callable[[Any], ClassShape]], ...] = (
    (is_model, _model),
    (lambda cls: issubclass(cls, msgspec.Struct), _struct),
    (dataclasses.is_dataclass, _dataclass),
    (typing.is_typeddict, _typed_dict),
    (lambda cls: issubclass(cls, tuple) and hasattr(cls, "_fields"), _named_tuple),
)


def enum_member(cls: Any, symbol: str) -> Any:
    """Return the member of an enum with a symbol as its value, or else as its name; MISSING without such a member."""
    by_value = {member.value: member for member in cls if isinstance(member.value, str)}
    return by_value.get(symbol, cls.__members__.get(symbol, MISSING))
