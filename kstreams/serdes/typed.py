"""`TypedSerde`: values of one declared type, which msgspec encodes and checks. `MsgpackSerde` is one of its formats."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from itertools import chain
from typing import Any, ClassVar

import msgspec
from msgspec import inspect

from kstreams.errors import SerdeError
from kstreams.kernel.decoders import decode_json, msgpack_decoder, type_info
from kstreams.serdes.base import Serde, decode_error
from kstreams.serdes.plain_check import plain_check

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def same_value(written: object, read: object) -> bool:
    """True if two values are equal. NaN equals NaN, and objects are compared by their fields.

    Examples
    --------
    >>> same_value([float("nan"), 1], [float("nan"), 1.0]), same_value((1, 2), [1, 2])
    (True, False)
    """
    if isinstance(written, msgspec.Raw):
        return same_value(decode_json(written), read)
    if type(written) is not type(read):
        return bool(written == read)
    return _comparison(type(written))(written, read)


def _comparison(kind: type) -> Callable[[object, object], bool]:
    for base, compare in _COMPARISONS.items():
        if issubclass(kind, base):
            return compare
    fields = _fields(kind)
    return _are_equal_or_nan if fields is None else lambda written, read: _have_same_fields(fields, written, read)


def _fields(kind: Any) -> tuple[str, ...] | None:
    """Return the names of the fields of a class. None if the class has no fields."""
    if issubclass(kind, msgspec.Struct):
        return tuple(kind.__struct_fields__)
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return tuple(kind.model_fields) if hasattr(kind, "model_fields") else None


def _have_same_fields(fields: tuple[str, ...], written: object, read: object) -> bool:
    return all(same_value(getattr(written, name), getattr(read, name)) for name in fields)


def _are_equal_or_nan(written: object, read: object) -> bool:
    return bool(written == read) or repr(written) == repr(read) == "nan"


def _are_same_sequences(written: Any, read: Any) -> bool:
    return len(written) == len(read) and all(map(same_value, written, read))


def _are_same_dicts(written: Any, read: Any) -> bool:
    return len(written) == len(read) and all(
        name in read and same_value(part, read[name]) for name, part in written.items()
    )


def _are_same_instants(written: Any, read: Any) -> bool:
    """True for the same instant. In Python, a time that occurs twice in its zone is unequal even to itself."""
    if written.utcoffset() is None or read.utcoffset() is None:
        return bool(written == read)
    return bool(written - _EPOCH == read - _EPOCH)


def _are_same_sets(written: Any, read: Any) -> bool:
    """Compare sets by the text of their items, since NaN does not equal itself."""
    return bool(written == read) or sorted(map(repr, written)) == sorted(map(repr, read))


_COMPARISONS: dict[type, Callable[[object, object], bool]] = {
    list: _are_same_sequences,
    tuple: _are_same_sequences,
    dict: _are_same_dicts,
    set: _are_same_sets,
    frozenset: _are_same_sets,
    datetime: _are_same_instants,
    Decimal: lambda written, read: str(written) == str(read),  # a signaling NaN cannot be compared
}


_JSON_CLASSES = (dict, list, str, int, float, bool)
"""The classes of values that JSON is read as. msgspec also handles their subclasses and superclasses."""


def unsupported_classes(kind: object) -> frozenset[type]:
    """Return the classes inside a type that msgspec can neither read nor write.

    Examples
    --------
    >>> class Order: ...
    >>> sorted(cls.__name__ for cls in unsupported_classes(dict[str, list[Order]]))
    ['Order']
    """
    classes = {info.cls for info in _parts_of(type_info(kind)) if isinstance(info, inspect.CustomType)}
    return frozenset(cls for cls in classes if not _is_supported(cls))


def _is_supported(cls: type) -> bool:
    return issubclass(cls, _JSON_CLASSES) or any(issubclass(json_class, cls) for json_class in _JSON_CLASSES)


def _parts_of(info: object) -> Iterator[object]:
    """Yield a type and its parts, each once, since types may be recursive."""
    visited = set[int]()
    pending = [info]
    while pending:
        part = pending.pop()
        if id(part) in visited or not isinstance(part, inspect.Type | inspect.Field | tuple):
            continue
        visited.add(id(part))
        yield part
        pending.extend(part if isinstance(part, tuple) else msgspec.structs.astuple(part))


UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)
"""Errors that msgspec raises for a value that it cannot write."""


class TypedSerde(Serde):
    """Values of one type. Every written value reads back equal.

    A value of exactly the classes of the type is written without a check. Any other value is read back, and refused if
    it differs. A subclass defines the format.
    """

    format: ClassVar[str]
    encoder: ClassVar[Any]
    decoder: ClassVar[Any]

    def __init__(self, kind: Any) -> None:
        try:
            self._decoder = self.decoder(kind)
            classes = unsupported_classes(kind)
        except (TypeError, NameError) as error:
            raise SerdeError(f"{kind!r} has no serde; declare a supported type or pass a Serde: {error}") from error
        if classes:
            names = " and ".join(sorted(cls.__name__ for cls in classes))
            raise SerdeError(
                f"no serde can write {names}: make it a dataclass, a msgspec.Struct or a pydantic model, or pass a "
                "Serde of your own"
            )
        self.type = kind
        self._decode = self._decoder.decode
        self._is_plain, self._are_plain = plain_check(kind)

    def serialize(self, value: object) -> bytes:
        try:
            data: bytes = self.encoder.encode(value)
        except UNWRITABLE as error:
            raise SerdeError(f"{value!r} cannot be written as {self.format}: {error}") from error
        return data if self._is_plain(value) else self._readable_form(value, data)

    def _readable_form(self, value: object, data: bytes) -> bytes:
        """Return the first form of a value that reads back equal. `data` is the usual form.

        Raises
        ------
        SerdeError
            If the value does not fit the type.
        """
        for form in chain((data,), self.other_forms(value)):
            try:
                read_value = self.deserialize(form)
            except SerdeError as error:
                reason = f"{error.__cause__ or error}"
            else:
                if same_value(value, read_value):
                    return form
                reason = f"it would be read back as {read_value!r}"
        kind = self.type.__name__ if isinstance(self.type, type) else self.type
        raise SerdeError(f"{value!r} does not fit {kind}: {reason}")

    def other_forms(self, value: object) -> Iterator[bytes]:
        """Yield other encodings of a value. They are tried if the usual encoding does not read back equal."""
        return iter(())

    def deserialize(self, data: bytes) -> Any:
        try:
            return self._decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise decode_error(f"{self.format} of {self.type}", data, error) from error

    def __reduce__(self) -> Any:
        return type(self), (self.type,)  # a decoder cannot be pickled

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedSerde) and type(other) is type(self) and self.type == other.type

    def __hash__(self) -> int:
        return hash(str(self.type))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self.type, '__name__', self.type)})"


class MsgpackSerde(TypedSerde):
    """Values of one type as MessagePack, which also has NaN and infinities. Aggregations by expression store values so.

    Parameters
    ----------
    kind : type
        Any type that msgspec reads and writes.

    Examples
    --------
    >>> MsgpackSerde(tuple[int, float]).deserialize(MsgpackSerde(tuple[int, float]).serialize((1, float("inf"))))
    (1, inf)
    """

    format = "MessagePack"
    encoder = msgspec.msgpack.Encoder()
    decoder = staticmethod(msgpack_decoder)
