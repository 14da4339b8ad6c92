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
class RecordField:
    """A field of a class whose objects are records.

    Parameters
    ----------
    name : str
        The name in schemas.
    attribute : str
        The name in objects.
    kind : Kind
    default : object
        The default. `MISSING` if the field has no default, or a function creates the default.
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
class RecordShape:
    """A class whose objects are records.

    Parameters
    ----------
    cls : type
    fields : mapping of str to RecordField
        The fields by their names in schemas, in order of declaration.
    create : callable
        Creates an object from keyword arguments.
    is_dict : bool
        True if the objects are dicts, as for a TypedDict.
    is_positional : bool
        True if the class takes its fields as positional arguments in their order.
    can_skip_init : bool
        True if objects can be created without `__init__`, by setting their fields. For a frozen dataclass, this takes
        half the time.
    """

    cls: type
    fields: Mapping[str, RecordField]
    create: Callable[..., Any]
    is_dict: bool = False
    is_positional: bool = False
    can_skip_init: bool = False


@dataclass(frozen=True, eq=False)
class Kind:
    """A parsed annotation.

    Parameters
    ----------
    hint : object
        The whole annotation.
    base : object
        The class without its arguments, or `Union`, `Literal` or `Any`.
    arguments : tuple of Kind
        The kinds in brackets, or the members of a union.
    extra : mapping
        The `extra` of `Annotated[..., msgspec.Meta(extra=...)]`.
    is_limited : bool
        True if msgspec checks more than the class of a value, as for `Meta(gt=0)`.
    is_naive : bool
        True for datetimes without a time zone, as for `Meta(tz=False)`.
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
    def shape(self) -> RecordShape | None:
        """The fields and the constructor of a class of records. None for other classes."""
        return _shape(self.base)

    @property
    def is_enum(self) -> bool:
        return isinstance(self.base, type) and issubclass(self.base, enum.Enum)

    def __str__(self) -> str:
        return getattr(self.hint, "__name__", str(self.hint))

    def resolved(self) -> Kind:
        """Return the kind after the fields of all its classes are resolved.

        The names in annotations may be unknown in the process that the kind is sent to.
        """
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
        if hint in (Any, object):
            return PLAIN
        return Kind(hint, type(None) if hint is None else hint, _default_arguments(hint))
    parse = _PARSERS.get(origin)
    return _parse_generic(hint, origin, arguments) if parse is None else parse(hint, arguments)


def _parse_generic(hint: object, origin: object, arguments: tuple[object, ...]) -> Kind:
    if not isinstance(origin, type):
        raise SerdeError(f"{hint!r} has no counterpart in Avro")
    if origin is tuple and (len(arguments) != 2 or arguments[1] is not Ellipsis):
        raise SerdeError(f"{hint!r} has no counterpart in Avro: an array holds any number of items of one type")
    return Kind(
        hint,
        _CONCRETE_CLASSES.get(origin, origin),
        tuple(kind_of(argument) for argument in arguments if argument is not Ellipsis),
    )


def _default_arguments(hint: object) -> tuple[Kind, ...]:
    """Return the arguments of `list`, `dict` and similar classes that stand without brackets."""
    if hint is dict:
        return Kind(str, str), PLAIN
    return (PLAIN,) if hint in (list, tuple, set, frozenset) else ()


def _parse_union(hint: object, arguments: tuple[object, ...]) -> Kind:
    return Kind(hint, Union, tuple(map(kind_of, arguments)))


def _parse_literal(hint: object, arguments: tuple[object, ...]) -> Kind:
    return Kind(hint, Literal, is_limited=True)


_CONCRETE_CLASSES: dict[object, object] = {
    **dict.fromkeys((typing.get_origin(typing.Sequence[int]), typing.get_origin(typing.Collection[int])), list),
    typing.get_origin(typing.Mapping[str, int]): dict,
}
_LIMITS = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length")


def _parse_annotated(hint: object, arguments: tuple[object, ...]) -> Kind:
    inner = kind_of(arguments[0])
    metadata = arguments[1:]
    extra = dict(inner.extra)
    is_limited = inner.is_limited
    is_naive = inner.is_naive
    for meta in (annotation for annotation in metadata if isinstance(annotation, msgspec.Meta)):
        extra |= meta.extra or {}
        is_limited |= any(getattr(meta, name) is not None for name in _LIMITS)
        is_naive |= meta.tz is False
    return Kind(hint, inner.base, inner.arguments, extra, is_limited, is_naive)


_PARSERS: dict[object, Callable[[object, tuple[object, ...]], Kind]] = {
    Annotated: _parse_annotated,
    Union: _parse_union,
    types.UnionType: _parse_union,
    Literal: _parse_literal,
}


@cache
def _shape(cls: object) -> RecordShape | None:
    for is_of_form, shape_of in _SHAPES:
        if isinstance(cls, type) and is_of_form(cls):
            return shape_of(cls)
    return None


def _field_kind(name: str, hint: object) -> Kind:
    try:
        return kind_of(hint)
    except SerdeError as error:
        raise SerdeError(f"field {name}: {error}") from None


def _hints(cls: type) -> dict[str, object]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise SerdeError(f"{cls.__name__} has an annotation with an unknown name: {error}") from error


def _struct_shape(cls: Any) -> RecordShape:
    hints = _hints(cls)
    fields = {
        field.encode_name: RecordField(
            name=field.encode_name,
            attribute=field.name,
            kind=_field_kind(field.name, hints[field.name]),
            default=field.default,
            has_default=not field.required,
            keyword=field.name,
        )
        for field in msgspec.structs.fields(cls)
    }
    return RecordShape(cls, fields, cls, is_positional=_is_positional(cls))


def _is_positional(cls: type) -> bool:
    """True if a class takes all its fields as positional arguments."""
    parameters = inspect.signature(cls).parameters.values()
    return all(parameter.kind is parameter.POSITIONAL_OR_KEYWORD for parameter in parameters)


def _dataclass_shape(cls: Any) -> RecordShape:
    hints = _hints(cls)
    init_fields = [field for field in dataclasses.fields(cls) if field.init]
    fields = {
        field.name: RecordField(
            name=field.name,
            attribute=field.name,
            kind=_field_kind(field.name, hints[field.name]),
            default=MISSING if field.default is dataclasses.MISSING else field.default,
            has_default=field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING,
            keyword=field.name,
        )
        for field in init_fields
    }
    return RecordShape(
        cls, fields, cls, is_positional=_is_positional(cls), can_skip_init=_can_skip_init(cls, len(fields))
    )


def _can_skip_init(cls: Any, field_count: int) -> bool:
    """True if the generated `__init__` of a frozen dataclass only sets its fields."""
    parameters = cls.__dataclass_params__
    is_generated = parameters.frozen and parameters.init and "__init__" in cls.__dict__
    is_plain = cls.__new__ is object.__new__ and not hasattr(cls, "__post_init__") and cls.__dictoffset__ != 0
    return is_generated and is_plain and _has_no_slots(cls) and field_count == len(cls.__dataclass_fields__)


def _has_no_slots(cls: type) -> bool:
    return not any(base.__dict__.get("__slots__") for base in cls.__mro__)


def _typed_dict_shape(cls: Any) -> RecordShape:
    hints = typing.get_type_hints(cls)
    required = cls.__required_keys__
    fields = {
        name: RecordField(
            name=name,
            attribute=name,
            kind=_field_kind(name, hint),
            default=MISSING,
            has_default=name not in required,
            keyword=name,
        )
        for name, hint in hints.items()
    }
    return RecordShape(cls, fields, dict, is_dict=True)


def _named_tuple_shape(cls: Any) -> RecordShape:
    hints = _hints(cls)
    defaults = cls._field_defaults
    fields = {
        name: RecordField(
            name=name,
            attribute=name,
            kind=_field_kind(name, hints.get(name, Any)),
            default=defaults.get(name, MISSING),
            has_default=name in defaults,
            keyword=name,
        )
        for name in cls._fields
    }
    return RecordShape(cls, fields, cls, is_positional=True)


def _model_shape(cls: Any) -> RecordShape:
    hints = _hints(cls)
    fields = {}
    for name, info in cls.model_fields.items():
        alias = info.alias or name
        fields[alias] = RecordField(
            name=alias,
            attribute=name,
            kind=_field_kind(name, hints[name]),
            default=MISSING if info.is_required() or info.default_factory is not None else info.default,
            has_default=not info.is_required(),
            keyword=alias,
        )
    return RecordShape(cls, fields, partial(_create_model, cls))


def _create_model(cls: Any, **values: Any) -> Any:
    return cls.model_validate(values)


_SHAPES: tuple[tuple[Callable[[type], bool], Callable[[type], RecordShape]], ...] = (
    (is_model, _model_shape),
    (lambda cls: issubclass(cls, msgspec.Struct), _struct_shape),
    (dataclasses.is_dataclass, _dataclass_shape),
    (typing.is_typeddict, _typed_dict_shape),
    (lambda cls: issubclass(cls, tuple) and hasattr(cls, "_fields"), _named_tuple_shape),
)


def enum_member(cls: type[enum.Enum], symbol: str) -> Any:
    """Return the member of an enum whose value or else whose name is a symbol. MISSING without such a member."""
    member_of_value = {member.value: member for member in cls if isinstance(member.value, str)}
    return member_of_value.get(symbol, cls.__members__.get(symbol, MISSING))
