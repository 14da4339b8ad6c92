"""`UnavailableValues`: the values that stand for columns that an event does not report.

PostgreSQL does not repeat a large value (TOAST) that an update leaves unchanged, and Debezium writes a placeholder for
it, in the form of the column's type.
"""

from __future__ import annotations

import uuid
from base64 import b64encode
from collections.abc import Mapping
from hashlib import md5
from typing import Any

import msgspec

from kstreams.serdes.avro.kinds import Kind

PLACEHOLDER = "__debezium_unavailable_value"
"""The default of `unavailable.value.placeholder`."""


class UnavailableValues:
    """The forms of one placeholder.

    Parameters
    ----------
    placeholder : str

    Examples
    --------
    >>> fields = {"id": msgspec.Raw(b"1"), "body": msgspec.Raw(b'"__debezium_unavailable_value"')}
    >>> UnavailableValues(PLACEHOLDER).among(fields)
    ('body',)
    """

    def __init__(self, placeholder: str) -> None:
        text = placeholder.encode()
        identifier = uuid.UUID(bytes=md5(text, usedforsecurity=False).digest(), version=3)
        self._text = placeholder
        self._base64 = b64encode(text).decode()
        self._numbers = list(text)
        self._identifiers = [str(identifier)]
        marks = (placeholder, self._base64, self._identifiers[0], ",".join(map(str, self._numbers)))
        self._marks = tuple(mark.encode() for mark in marks)
        self._forms = frozenset(map(msgspec.json.encode, self._all_forms()))

    def _all_forms(self) -> list[object]:
        text = self._text
        return [text, self._base64, [text], self._numbers, self._identifiers, {text: text}]

    def may_occur_in(self, data: bytes) -> bool:
        """True if JSON may have a placeholder."""
        return any(mark in data for mark in self._marks)

    def among(self, fields: Mapping[str, msgspec.Raw]) -> tuple[str, ...]:
        """Return the names of the fields whose JSON is a placeholder."""
        return tuple(name for name, raw in fields.items() if bytes(raw) in self._forms)

    def of_kind(self, kind: Kind) -> Any:
        """Return the placeholder that Debezium writes for a column of a type, as a value for JSON."""
        members = [member for member in kind.arguments if member.base is not type(None)]
        if kind.base is list and members:
            return {str: [self._text], uuid.UUID: self._identifiers}.get(members[0].base, self._numbers)
        if kind.base is bytes:
            return self._base64
        return self.of_kind(members[0]) if len(members) == 1 and kind.base is not dict else self._text
