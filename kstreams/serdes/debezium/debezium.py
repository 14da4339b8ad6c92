"""`Debezium`: the serde of change events in Debezium's envelope."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from kstreams.errors import SerdeError
from kstreams.kernel.durations import Duration, to_ms
from kstreams.row_change import RowChange
from kstreams.serdes.avro.kinds import PLAIN, Kind, kind_of
from kstreams.serdes.base import Serde, decode_error
from kstreams.serdes.connect.codec import READ_ERRORS, CodecBuilder, attribute_reader
from kstreams.serdes.connect.logical import Conventions
from kstreams.serdes.connect.payload_reader import PayloadReader
from kstreams.serdes.connect.schema import ConnectSchema
from kstreams.serdes.debezium.envelope import LETTERS, EnvelopeCodec
from kstreams.serdes.debezium.unavailable import PLACEHOLDER, UnavailableValues
from kstreams.serdes.plain_check import plain_check
from kstreams.serdes.typed import UNWRITABLE, same_value

T = TypeVar("T")
_DECIMALS: Final = {"precise": "base64", "string": "text", "double": "numeric"}
_UNITS: Final = {"adaptive": "us", "connect": "ms", "microseconds": "us", "nanoseconds": "ns", "isostring": "us"}
_encode = msgspec.json.Encoder().encode


class Debezium(Serde[RowChange[T]], Generic[T]):
    """Change events of Debezium, with a schema in each record or without one.

    `topology.stream(topic, value=ks.Debezium(Order))` has values of `ks.RowChange`. `topology.table(topic,
    value=ks.Debezium(Order))` has the rows of the database: copies that a connector writes again after a crash are
    dropped by their LSN, and columns that an event does not report keep their values.

    Parameters
    ----------
    kind : type, optional
        A dataclass, msgspec Struct or TypedDict with the columns that you need. Default: dicts.
    decimals : {"precise", "string", "double"}, default "precise"
        The connector's `decimal.handling.mode`. Decimals in Base64 without a schema need their scale, as in
        `Annotated[Decimal, msgspec.Meta(extra={"scale": 2})]`. Not needed if the records carry schemas.
    times : {"adaptive", "connect", "microseconds", "nanoseconds", "isostring"}, default "adaptive"
        The connector's `time.precision.mode`. `adaptive` is microseconds; a column with fewer digits, such as
        `timestamp(3)`, is declared as `Annotated[datetime, msgspec.Meta(tz=False, extra={"unit": "ms"})]`. Not needed
        if the records carry schemas.
    placeholder : str
        The connector's `unavailable.value.placeholder`.
    delete_retention : timedelta or int (ms), default 1 day
        How long a table remembers the LSN of a deleted row, to drop copies of the row's earlier events.
    truncate : {"fail", "delete"}, default "fail"
        What a table does with `TRUNCATE` (only with `skipped.operations=none`): an error, or delete all rows of the
        partition that has the event. Truncation has no key, so it is in one partition only.
    snapshot : {"replace", "merge"}, default "replace"
        What a table does with a further snapshot: delete the rows that it does not report, since they were deleted in
        the database, or leave them. Write `"merge"` if you request blocking snapshots of a part of the table.

    Raises
    ------
    SerdeError
        If the type has no form in Kafka Connect, or an option has an unknown value.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import kstreams as ks
    >>> @dataclass(frozen=True)
    ... class Order:
    ...     id: int
    ...     price: float
    >>> event = b'{"before":null,"after":{"id":1,"price":2.5},"source":{"lsn":7},"op":"c","ts_ms":0}'
    >>> ks.Debezium(Order).deserialize(event).after
    Order(id=1, price=2.5)
    """

    def __init__(
        self,
        kind: type[T] | Any = None,
        *,
        decimals: Literal["precise", "string", "double"] = "precise",
        times: Literal["adaptive", "connect", "microseconds", "nanoseconds", "isostring"] = "adaptive",
        placeholder: str = PLACEHOLDER,
        delete_retention: Duration = timedelta(days=1),
        truncate: Literal["fail", "delete"] = "fail",
        snapshot: Literal["replace", "merge"] = "replace",
    ) -> None:
        _check("decimals", decimals, _DECIMALS)
        _check("times", times, _UNITS)
        _check("truncate", truncate, ("fail", "delete"))
        _check("snapshot", snapshot, ("replace", "merge"))
        self.type = RowChange
        self.row_type: Any = Any if kind is None else kind
        self.delete_retention_ms = to_ms(delete_retention)
        self.truncate = truncate
        self.snapshot = snapshot
        self._options = (decimals, times, placeholder)
        self._conventions = Conventions(unit=_UNITS[times], is_naive=True, decimals=_DECIMALS[decimals])
        self._unavailable = UnavailableValues(placeholder)
        self._kind = PLAIN if kind is None else _kind_of(kind)
        shape = self._kind.shape
        self._attributes = {} if shape is None else {name: part.attribute for name, part in shape.fields.items()}
        self._reader = PayloadReader(self._codec)
        self._rows = CodecBuilder(self._conventions, writes_non_finite=True).of(self._kind, None)
        self._is_plain = plain_check(self.row_type).one

    def _codec(self, schema: ConnectSchema | None) -> EnvelopeCodec:
        if schema is not None and "op" not in schema.fields:
            raise SerdeError(_NO_ENVELOPE)
        row = None if schema is None else schema.fields["after"]
        return EnvelopeCodec(CodecBuilder(self._conventions).of(self._kind, row), self._unavailable, self._attributes)

    def deserialize(self, data: bytes) -> RowChange[T]:
        try:
            change: RowChange[T] = self._reader.read(data)
            return change
        except READ_ERRORS as error:
            reason = _NO_ENVELOPE if "`op`" in str(error) else str(error)
            raise decode_error(f"an event of Debezium for {self._kind}", data, reason) from error

    def serialize(self, value: RowChange[T]) -> bytes:
        try:
            data = _encode(self._envelope(value))
        except (*UNWRITABLE, ArithmeticError, AttributeError, KeyError) as error:
            raise SerdeError(f"{value!r} cannot be written as an event of Debezium: {error}") from error
        if not all(row is None or self._is_plain(row) for row in (value.before, value.after)):
            read_value = self.deserialize(data)
            if not (value == read_value or same_value(value, read_value)):
                raise SerdeError(f"{value!r} does not fit {self._kind}: it would be read back as {read_value!r}")
        return data

    def _envelope(self, change: RowChange[T]) -> dict[str, object]:
        return {
            "before": None if change.before is None else self._rows.write(change.before),
            "after": None if change.after is None else self._after(change.after, change.unavailable),
            "source": change.source,
            "transaction": change.transaction,
            "op": LETTERS[change.operation],
            "ts_ms": change.ts_ms,
        }

    def _after(self, row: Any, unavailable: tuple[str, ...]) -> object:
        if not unavailable:
            return self._rows.write(row)
        shape = self._kind.shape
        if shape is None:
            return {**row, **dict.fromkeys(unavailable, self._unavailable.of_kind(PLAIN))}
        return {
            name: self._unavailable.of_kind(part.kind)
            if part.attribute in unavailable
            else self._rows.fields[name].write(attribute_reader(shape, part)(row))
            for name, part in shape.fields.items()
        }

    def __reduce__(self) -> Any:
        return _debezium, self._arguments()

    def _arguments(self) -> tuple[Any, ...]:
        return self.row_type, self._options, (self.delete_retention_ms, self.truncate, self.snapshot)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Debezium) and self._arguments() == other._arguments()

    def __hash__(self) -> int:
        return hash((Debezium, str(self.row_type), self._options))

    def __repr__(self) -> str:
        return f"Debezium({'' if self._kind is PLAIN else self._kind})"


_NO_ENVELOPE = (
    "it has no envelope of Debezium (no field `op`): if ExtractNewRecordState unwraps the rows, read them with "
    "ks.ConnectJson"
)


def _check(option: str, value: object, known: Mapping[str, str] | tuple[str, ...]) -> None:
    if value not in known:
        raise SerdeError(f"Debezium(..., {option}={value!r}): write one of {', '.join(map(repr, known))}")


def _kind_of(hint: object) -> Kind:
    try:
        return kind_of(hint)
    except SerdeError as error:
        raise SerdeError(f"{error}".replace("Avro", "Kafka Connect")) from None


def _debezium(kind: Any, options: tuple[Any, Any, str], of_tables: tuple[int, Any, Any]) -> Debezium[Any]:
    decimals, times, placeholder = options
    delete_retention_ms, truncate, snapshot = of_tables
    return Debezium(
        None if kind is Any else kind,
        decimals=decimals,
        times=times,
        placeholder=placeholder,
        delete_retention=delete_retention_ms,
        truncate=truncate,
        snapshot=snapshot,
    )
