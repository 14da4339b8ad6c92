"""`SerdeKind`: all that is known of one class of serdes beside its methods, found by the class."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from kstreams.errors import SerdeError
from kstreams.serdes.base import Serde


def _never(serde: Any) -> bool:
    return False


def _no_arguments(serde: Any) -> tuple[Any, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SerdeKind:
    """One class of serdes: which types it serves, what its keys and values may be kept as, and its name.

    Bytes and Arrow columns are methods of the serde itself. A subclass may write other bytes than its base, so that it
    is a kind of its own, of which nothing is known until it is registered.

    Parameters
    ----------
    serde : type
        The class; its methods give bytes (`serialize`, `deserialize`) and Arrow columns (`arrow_type`,
        `decode_column`, `encode_column`).
    default : Serde, optional
        What `serde_of` answers for its `type`.
    same_bytes_when_equal : callable, default never
        `(serde) -> bool`: whether two keys are equal exactly when their bytes are. Then a store knows keys by the
        objects themselves, else by their bytes. Keys are ordered by their bytes in any case.
    immutable : callable, default never
        `(serde) -> bool`: whether no value can change after it was made. Then a store keeps values as the objects that
        were put, else as their bytes.
    name : str, optional
        What the settings of a topic call it, such as `acme.money`: lower-case words with a dot between them, so that a
        tool that does not know it can tell it from a slip. Without one, tools guess what its records are.
    make : callable, optional
        Makes a serde from the arguments of a name; the class itself unless given.
    arguments : callable, optional
        `(serde) -> tuple`: the arguments in its name, each a Serde or an int.
    parameters : tuple of type
        `Serde` or `int` for each argument.
    """

    serde: type[Serde[Any]]
    default: Serde[Any] | None = None
    same_bytes_when_equal: Callable[[Any], bool] = _never
    immutable: Callable[[Any], bool] = _never
    name: str | None = None
    make: Callable[..., Serde[Any]] | None = None
    arguments: Callable[[Any], tuple[Any, ...]] = _no_arguments
    parameters: tuple[type, ...] = ()

    def made_of(self, arguments: Iterable[Any]) -> Serde[Any]:
        """A serde of this kind, of the arguments in a name."""
        return (self.make or self.serde)(*arguments)


_NAME = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
_UNKNOWN = SerdeKind(serde=Serde)
_BY_CLASS: dict[type, SerdeKind] = {}
_BY_TYPE: dict[Any, Serde[Any]] = {}
_BY_NAME: dict[str, SerdeKind] = {}
_ELSEWHERE = {"protobuf": "kstreams.serdes.protobuf"}
"""Kinds that are registered when they are first imported, since they need a library that may be absent."""


def register_serde(kind: SerdeKind) -> None:
    """Make a kind of serdes known: `serde_of` finds it by the type of its default, topic settings by its name.

    Parameters
    ----------
    kind : SerdeKind

    Raises
    ------
    SerdeError
        When its class or its name is known already, its name has no dot, or its default names no type.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from kstreams.serdes import Serde, serde_of
    >>> class FractionSerde(Serde[Fraction]):
    ...     type = Fraction
    ...
    ...     def serialize(self, value):
    ...         return str(value).encode()
    ...
    ...     def deserialize(self, data):
    ...         return Fraction(data.decode())
    >>> register_serde(SerdeKind(serde=FractionSerde, default=FractionSerde(), immutable=lambda serde: True))
    >>> serde_of(Fraction).serialize(Fraction(1, 3))
    b'1/3'
    """
    if kind.name is not None and not _NAME.fullmatch(kind.name):
        raise SerdeError(f"{kind.name!r} cannot name a serde: join lower-case words with dots, as in 'acme.money'")
    add_kind(kind)


def add_kind(kind: SerdeKind) -> None:
    """As `register_serde`, for the kinds that come with the package: their names have no dot."""
    if kind.serde in _BY_CLASS:
        raise SerdeError(f"{kind.serde.__name__} is registered already")
    if kind.name in _BY_NAME:
        raise SerdeError(f"a serde is called {kind.name!r} already: give {kind.serde.__name__} another name")
    if kind.default is not None:
        if kind.default.type is None:
            raise SerdeError(f"{kind.default!r} cannot be the default of a type: set its `type`")
        _BY_TYPE[kind.default.type] = kind.default
    _BY_CLASS[kind.serde] = kind
    if kind.name is not None:
        _BY_NAME[kind.name] = kind


def serde_kind(serde: Serde[Any]) -> SerdeKind:
    """What is known of a serde; of one that nobody has registered, nothing.

    Examples
    --------
    >>> from kstreams.serdes import IntSerde
    >>> serde_kind(IntSerde()).name
    'int'
    """
    return _BY_CLASS.get(type(serde), _UNKNOWN)


def kind_named(name: str) -> SerdeKind | None:
    """The kind of a name in topic settings."""
    if name in _ELSEWHERE:
        import_module(_ELSEWHERE[name])  # registers it
    return _BY_NAME.get(name)


def named_kinds() -> list[SerdeKind]:
    """All kinds that have a name, in the order in which they were registered."""
    return list(_BY_NAME.values())


def default_serde(kind: Any) -> Serde[Any] | None:
    """The serde that is registered for a type."""
    try:
        return _BY_TYPE.get(kind)
    except TypeError:  # an annotation that cannot be hashed
        return None


def same_bytes_when_equal(serde: Serde[Any]) -> bool:
    """Whether keys are equal objects exactly when they have equal bytes (not so: 0.0 and -0.0, JSON's 1 and 1.0)."""
    return serde_kind(serde).same_bytes_when_equal(serde)


def has_immutable_values(serde: Serde[Any]) -> bool:
    """Whether a value can be kept as the object it is. An unknown serde may change what passes through it: no."""
    return serde_kind(serde).immutable(serde)
