"""`serde_of`: the serde of a Python type."""

from __future__ import annotations

from kstreams.errors import SerdeError
from kstreams.serdes.base import Serde, without_none
from kstreams.serdes.json import JsonSerde
from kstreams.serdes.pydantic_models import PydanticSerde, is_model
from kstreams.serdes.registry import default_serde
from kstreams.serdes.typed import unsupported_classes


def serde_of(kind: object) -> Serde:
    """Return the serde of a type. A serde is returned unchanged.

    Parameters
    ----------
    kind : type or Serde
        `str`, `int` (8 bytes, big endian), `float`, `bytes`, `bool`, `datetime` or `uuid.UUID`. Or a type that is
        written as JSON: a Struct, dataclass, TypedDict, list, dict, a union of these, or a pydantic model.
        `T | None` has the serde of `T`, since None is Kafka's null and has no bytes. `register_serde` adds types.

    Raises
    ------
    SerdeError
        If the type has no serde.

    Examples
    --------
    >>> serde_of(str).deserialize(b"hello")
    'hello'
    """
    if isinstance(kind, Serde):
        return kind
    if isinstance(kind, type) and issubclass(kind, Serde):
        raise SerdeError(f"{kind.__name__} is a class of serdes: make one, as {kind.__name__}()")
    kind = without_none(kind)
    default = default_serde(kind)
    return json_serde(kind) if default is None else default


def json_serde(kind: object) -> Serde:
    """Return the serde that writes values of a type as JSON. Types with pydantic models use pydantic.

    Examples
    --------
    >>> json_serde(int).serialize(7)
    b'7'
    """
    try:
        classes = unsupported_classes(kind)
    except (TypeError, NameError):
        classes = frozenset()
    return PydanticSerde(kind) if any(map(is_model, classes)) else JsonSerde(kind)
