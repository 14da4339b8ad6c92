"""`EnvelopeCodec`: the conversion of Debezium's envelope to a `RowChange`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kstreams.kernel.decoders import json_decoder
from kstreams.row_change import ChangeSource, ChangeTransaction, Operation, RowChange
from kstreams.serdes.connect.codec import NULL, Codec, optional
from kstreams.serdes.debezium.unavailable import UnavailableValues

OPERATIONS: Final[Mapping[str, Operation]] = {
    "c": "create",
    "u": "update",
    "d": "delete",
    "r": "read",
    "t": "truncate",
}
LETTERS: Final = {operation: letter for letter, operation in OPERATIONS.items()}
_RAW_FIELDS: Final = json_decoder(dict[str, msgspec.Raw])


class _RawEnvelope(msgspec.Struct):
    """An envelope whose rows are not decoded."""

    op: str
    before: msgspec.Raw = msgspec.Raw(NULL)
    after: msgspec.Raw = msgspec.Raw(NULL)
    source: ChangeSource = ChangeSource()
    transaction: ChangeTransaction | None = None
    ts_ms: int | None = None


_RAW_DECODER = json_decoder(_RawEnvelope)


def _envelope_type(row: Any) -> Any:
    """Return the type of envelopes with decoded rows."""
    declarations: list[Any] = [
        ("op", str),
        ("before", row, None),
        ("after", row, None),
        ("source", ChangeSource, ChangeSource()),
        ("transaction", ChangeTransaction | None, None),
        ("ts_ms", int | None, None),
    ]
    return msgspec.defstruct("Envelope", declarations)


class EnvelopeCodec(Codec):
    """The conversion of envelopes.

    Parameters
    ----------
    row : Codec
        The codec of the rows.
    unavailable : UnavailableValues
        The placeholders of columns that are not reported.
    attributes : mapping of str to str
        The attributes of rows by the names of columns.
    """

    def __init__(self, row: Codec, unavailable: UnavailableValues, attributes: Mapping[str, str]) -> None:
        nullable = optional(row)
        super().__init__(_envelope_type(nullable.wire), read=lambda envelope: _change(envelope, nullable))
        object.__setattr__(self, "_row", row)
        object.__setattr__(self, "_unavailable", unavailable)
        object.__setattr__(self, "_attributes", attributes)

    _row: Codec
    _unavailable: UnavailableValues
    _attributes: Mapping[str, str]

    def decode(self, data: bytes | msgspec.Raw) -> Any:
        if bytes(data) == NULL:
            return None
        if self._unavailable.may_occur_in(bytes(data)):
            return self._decode_parts(data)
        try:
            return self.read(self.decoder.decode(data))
        except msgspec.ValidationError:
            if b"NaN" in bytes(data) or b"Infinity" in bytes(data):
                return self._decode_parts(data)
            raise

    def _decode_parts(self, data: bytes | msgspec.Raw) -> RowChange[Any]:
        """Decode the columns one by one, since some of them have no value of their type."""
        envelope = _RAW_DECODER.decode(data)
        has_after = bytes(envelope.after) != NULL
        unavailable = self._unavailable.among(_RAW_FIELDS.decode(envelope.after)) if has_after else ()
        reported = tuple(name for name in unavailable if not self._row.fields or name in self._row.fields)
        return RowChange(
            operation=_operation(envelope.op),
            before=None if bytes(envelope.before) == NULL else self._row.decode(envelope.before),
            after=self._row.decode_fields(envelope.after, dict.fromkeys(reported)) if has_after else None,
            source=envelope.source,
            transaction=envelope.transaction,
            ts_ms=envelope.ts_ms or 0,
            unavailable=tuple(self._attributes.get(name, name) for name in reported),
        )


def _change(envelope: Any, row: Codec) -> RowChange[Any]:
    return RowChange(
        operation=_operation(envelope.op),
        before=row.read(envelope.before),
        after=row.read(envelope.after),
        source=envelope.source,
        transaction=envelope.transaction,
        ts_ms=envelope.ts_ms or 0,
    )


def _operation(letter: str) -> Operation:
    operation = OPERATIONS.get(letter)
    if operation is None:
        raise ValueError(f"{letter!r} is no operation on a row")
    return operation
