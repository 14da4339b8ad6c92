"""Pydantic models by their own JSON, alone or in lists, dicts and the like. Pydantic is used, not imported."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from kstreams.errors import SerdeError
from kstreams.serdes.base import Serde, decode_error
from kstreams.serdes.non_finite import json_forms
from kstreams.serdes.typed import same_value


def is_model(kind: Any) -> bool:
    """Whether a type is a pydantic model: whoever has one has imported pydantic."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


class PydanticSerde(Serde[Any]):
    """Values of a type that is, or holds, pydantic models, as JSON; fields that have an alias go by it.

    Parameters
    ----------
    kind : type
        A model, or for example a list of one.
    """

    def __init__(self, kind: Any) -> None:
        pydantic = sys.modules["pydantic"]
        try:
            self._adapter = pydantic.TypeAdapter(kind)
        except Exception as error:
            raise SerdeError(f"{kind!r} has no serde: {str(error).partition(chr(10))[0]}") from error
        self.type = kind

    def serialize(self, value: Any) -> bytes:
        if is_model(self.type) and not isinstance(value, self.type):
            name = self.type.__name__
            raise SerdeError(f"{value!r} is no {name}: make one, as {name}(...), or {name}.model_validate(value)")
        try:
            if not is_model(self.type):
                self._adapter.validate_python(value, strict=True)  # pydantic writes what looks like a model, too
            data: bytes = self._adapter.dump_json(value, by_alias=True, warnings="error")
        except Exception as error:
            raise SerdeError(f"{value!r} cannot be written as JSON: {error}") from error
        return data if b"null" not in data and self._reads(data) else self._readable(value, data)

    def _reads(self, data: bytes) -> bool:
        """Whether bytes are ones of the type."""
        try:
            self._adapter.validate_json(data)
        except ValueError:
            return False
        return True

    def _readable(self, value: Any, data: bytes) -> bytes:
        """The bytes of a value that may hold NaN, which `data` has as null, or that may not fit its type."""
        others = list(json_forms(self._builtins(value)))
        for form in (data, *others):
            if self._reads(form) and same_value(value, self.deserialize(form)):
                return form
        self.deserialize(data)
        if others:
            raise SerdeError(f"{value!r} holds NaN or infinities, and would be read back without them")
        return data  # what a model leaves out of its JSON by its own rules, it may leave out

    def _builtins(self, value: Any) -> Any:
        """A value as dicts, lists, texts and numbers, NaN among them: pydantic's own JSON has null for it."""
        return msgspec.to_builtins(self._adapter.dump_python(value, by_alias=True), str_keys=True, enc_hook=str)

    def deserialize(self, data: bytes) -> Any:
        try:
            return self._adapter.validate_json(data)
        except ValueError as error:
            raise decode_error(f"JSON of {self.type}", data, _said(error)) from error

    def __reduce__(self) -> Any:
        return type(self), (self.type,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PydanticSerde) and self.type == other.type

    def __hash__(self) -> int:
        return hash(str(self.type))

    def __repr__(self) -> str:
        return f"PydanticSerde({getattr(self.type, '__name__', self.type)})"


def _said(error: Any) -> str:
    """A validation error in one line."""
    return "; ".join(f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in error.errors())
