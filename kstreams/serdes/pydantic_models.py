"""`PydanticSerde`: JSON of pydantic models, alone or in collections. Pydantic is not imported before the user does."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from kstreams.errors import SerdeError
from kstreams.serdes.base import Serde, decode_error
from kstreams.serdes.non_finite import json_forms
from kstreams.serdes.typed import same_value


def is_model(kind: object) -> bool:
    """True if a type is a pydantic model."""
    pydantic = sys.modules.get("pydantic")  # whoever defines a model has imported pydantic
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


class PydanticSerde(Serde):
    """JSON of a type that is a pydantic model, or contains one. Aliases of fields are used.

    Parameters
    ----------
    kind : type
        A model, or a type that contains models.
    """

    def __init__(self, kind: Any) -> None:
        pydantic = sys.modules["pydantic"]
        try:
            self._adapter = pydantic.TypeAdapter(kind)
        except Exception as error:
            raise SerdeError(f"{kind!r} has no serde: {str(error).partition(chr(10))[0]}") from error
        self.type = kind

    def serialize(self, value: object) -> bytes:
        if is_model(self.type) and not isinstance(value, self.type):
            name = self.type.__name__
            raise SerdeError(f"{value!r} is no {name}: make one, as {name}(...), or {name}.model_validate(value)")
        try:
            if not is_model(self.type):
                self._adapter.validate_python(
                    value, strict=True
                )  # pydantic also writes objects that only resemble models
            data: bytes = self._adapter.dump_json(value, by_alias=True, warnings="error")
        except Exception as error:
            raise SerdeError(f"{value!r} cannot be written as JSON: {error}") from error
        return data if b"null" not in data and self._is_readable(data) else self._readable_form(value, data)

    def _is_readable(self, data: bytes) -> bool:
        """True if bytes decode to the type."""
        try:
            self._adapter.validate_json(data)
        except ValueError:
            return False
        return True

    def _readable_form(self, value: object, data: bytes) -> bytes:
        """Return a form of a value that reads back equal. `data` is the usual form, in which NaN is null.

        Raises
        ------
        SerdeError
            If the value does not fit its type, or has no form that reads back equal.
        """
        other_forms = list(json_forms(self._builtins(value)))
        for form in (data, *other_forms):
            if self._is_readable(form) and same_value(value, self.deserialize(form)):
                return form
        self.deserialize(data)
        if other_forms:
            raise SerdeError(f"{value!r} holds NaN or infinities, and would be read back without them")
        return data  # a model may exclude fields from its JSON

    def _builtins(self, value: object) -> object:
        """Return a value as dicts, lists, strings and numbers. NaN stays NaN, but becomes null in pydantic's JSON."""
        return msgspec.to_builtins(self._adapter.dump_python(value, by_alias=True), str_keys=True, enc_hook=str)

    def deserialize(self, data: bytes) -> Any:
        try:
            return self._adapter.validate_json(data)
        except ValueError as error:
            raise decode_error(f"JSON of {self.type}", data, _in_one_line(error)) from error

    def __reduce__(self) -> Any:
        return type(self), (self.type,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PydanticSerde) and self.type == other.type

    def __hash__(self) -> int:
        return hash(str(self.type))

    def __repr__(self) -> str:
        return f"PydanticSerde({getattr(self.type, '__name__', self.type)})"


def _in_one_line(error: Any) -> str:
    return "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
