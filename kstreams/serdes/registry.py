"""`SerdeKind`: the descriptor of a class of serdes, and the registry of descriptors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from kstreams.errors import SerdeError
from kstreams.serdes.base import Serde


def _never(serde: object) -> bool:
    return False


def _no_arguments(serde: object) -> tuple[object, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SerdeKind:
    """Descriptor of one class of serdes: its name, and how stores may hold its keys and values.

    A subclass of a registered class has no descriptor until it is registered itself, since it may write other bytes.

    Parameters
    ----------
    serde : type
        The class.
    default : Serde, optional
        The serde that `serde_of` returns for the `type` of this serde.
    same_bytes_when_equal : callable, default never
        `(serde) -> bool`: True if two keys are equal exactly when their bytes are. Then a store looks up keys by the
        objects, otherwise by the bytes. In both cases, keys are sorted by their bytes.
    immutable : callable, default never
        `(serde) -> bool`: True if no value can change. Then a store holds the objects that were put, otherwise their
        bytes.
    name : str, optional
        The name in the configuration of topics, such as `acme.money`: lower-case words joined by dots, so that a tool
        without this serde can tell the name from a misspelling. Without a name, tools guess the type of records.
    make : callable, optional
        Creates a serde from the arguments of a name. Default: the class.
    arguments : callable, optional
        `(serde) -> tuple`: the arguments in the name of a serde. Each is a Serde or an int.
    parameters : tuple of type
        The type of each argument: `Serde` or `int`.
    """

    serde: type[Serde]
    default: Serde | None = None
    same_bytes_when_equal: Callable[[Any], bool] = _never
    immutable: Callable[[Any], bool] = _never
    name: str | None = None
    make: Callable[..., Serde] | None = None
    arguments: Callable[[Any], tuple[Any, ...]] = _no_arguments
    parameters: tuple[type, ...] = ()

    def create(self, arguments: Iterable[Any]) -> Serde:
        """Create a serde from the arguments of a name."""
        return (self.make or self.serde)(*arguments)


_NAME = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
_UNKNOWN = SerdeKind(serde=Serde)
_BY_CLASS: dict[type, SerdeKind] = {}
_BY_TYPE: dict[object, Serde] = {}
_BY_NAME: dict[str, SerdeKind] = {}
_OPTIONAL_MODULES = {"protobuf": "kstreams.serdes.protobuf"}
"""The modules of kinds that need an optional library. Each module registers its kind when it is imported."""


def register_serde(kind: SerdeKind) -> None:
    """Register a kind of serdes. `serde_of` finds the kind by the type of its default, topic settings by its name.

    Parameters
    ----------
    kind : SerdeKind

    Raises
    ------
    SerdeError
        If the class or the name is registered already, the name has no dot, or the default has no type.

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
    """Register a kind of this package, whose name needs no dot."""
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


def serde_kind(serde: Serde) -> SerdeKind:
    """Return the descriptor of a serde. An unregistered serde has an empty descriptor.

    Examples
    --------
    >>> from kstreams.serdes import IntSerde
    >>> serde_kind(IntSerde()).name
    'int'
    """
    return _BY_CLASS.get(type(serde), _UNKNOWN)


def kind_named(name: str) -> SerdeKind | None:
    """Return the kind with this name, or None."""
    if name in _OPTIONAL_MODULES:
        import_module(_OPTIONAL_MODULES[name])
    return _BY_NAME.get(name)


def named_kinds() -> list[SerdeKind]:
    """Return all kinds with a name, in the order of registration."""
    return list(_BY_NAME.values())


def default_serde(kind: object) -> Serde | None:
    """Return the serde that is registered for a type, or None."""
    try:
        return _BY_TYPE.get(kind)
    except TypeError:  # an annotation that cannot be hashed
        return None


def same_bytes_when_equal(serde: Serde) -> bool:
    """True if keys are equal exactly when their bytes are. 0.0 and -0.0 are equal, but their bytes differ."""
    return serde_kind(serde).same_bytes_when_equal(serde)


def has_immutable_values(serde: Serde) -> bool:
    """True if a store can hold the objects themselves, since they cannot change. False for an unregistered serde."""
    return serde_kind(serde).immutable(serde)
