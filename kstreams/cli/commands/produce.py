"""`kstreams produce`: writes lines, objects or whole files to a topic."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import IO, Annotated, Any, NamedTuple

import msgspec
import typer

from kstreams.cli.csv_rows import CsvRows, checked_type, require_columns
from kstreams.cli.home import home_named, opened
from kstreams.cli.options import KeyType, LogDir, TopicName, ValueType
from kstreams.cli.output import counted
from kstreams.cli.registry import uses_of
from kstreams.cli.schema_writing import Encoders, topic_encoders
from kstreams.errors import KStreamsError, SerdeError
from kstreams.kernel.decoders import json_decoder
from kstreams.log.api import Admin, Producer
from kstreams.log.topic_types import MIXED, TopicTypes, holds_records, store_types, types_of
from kstreams.record import Headers
from kstreams.serdes.byte_kinds import AUTO, HEX, RAW, encode_json

_LATEST_MS = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant_ms(time: int | str) -> int:
    """Return the milliseconds since 1970 of a time. A time without a zone is UTC.

    Raises
    ------
    KStreamsError
        If the text is no time, or the time is out of range.

    Examples
    --------
    >>> instant_ms(7), instant_ms("7"), instant_ms("2026-11-25T12:00:00.5+01:00"), instant_ms("2026-11-25 11:00")
    (7, 7, 1795604400500, 1795604400000)
    """
    time_ms = time if isinstance(time, int) else _of_text(time)
    if not 0 <= time_ms <= _LATEST_MS:
        raise KStreamsError(
            f"its timestamp {time} is no time: give the milliseconds since 1970-01-01T00:00Z, or an ISO time"
        )
    return time_ms


def _of_text(text: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise KStreamsError(
            f"its timestamp {text!r} is no time: write it as 2026-11-25T12:00:00Z, or as milliseconds since 1970"
        ) from None
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)


_RECORDS_PER_CHECK = 10_000
_PROGRESS_INTERVAL_S = 5.0


class InputRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A line of `produce --json`, as `consume --json` prints it. Topic and offset are ignored."""

    key: Any = None
    value: Any = None
    timestamp: int | str | None = None
    headers: list[tuple[str, Any]] = []
    partition: int | None = None
    topic: str | None = None
    offset: int | None = None


Send = Callable[[bytes], None]


def produce(
    topic: TopicName,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Lines are objects with key, value, timestamp, headers, as `consume` prints them; a timestamp is in "
            "milliseconds, or an ISO time.",
        ),
    ] = False,
    as_csv: Annotated[
        bool,
        typer.Option(
            "--csv", help="Rows of CSV below a header; each is an object (JSON) with the columns as its fields."
        ),
    ] = False,
    key_column: Annotated[str | None, typer.Option(metavar="NAME", help="With --csv: the column of keys.")] = None,
    timestamp_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="With --csv: the column of timestamps, in milliseconds or ISO (UTC without a zone)."
        ),
    ] = None,
    value_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --csv: the only column that is written, as the value.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column", metavar="NAME=TYPE",
            help="With --csv: type of a column, `int`, `float`, `bool` or `str`; default: by its first 1,000 cells.",
        ),
    ] = None,
    delimiter: Annotated[
        str, typer.Option(metavar="CHARACTER", help="With --csv: the character between cells; `tab` for a tab.")
    ] = ",",
    separator: Annotated[
        str | None,
        typer.Option(
            "--separator", "-s", metavar="TEXT", help="Separator of key and value; without it, each line is a value."
        ),
    ] = None,
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--file", exists=True, dir_okay=False, readable=True,
            help="Read this file, not standard input; may be repeated.",
        ),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Write each file as the value of one record, byte by byte.")
    ] = False,
    key: Annotated[str | None, typer.Option(help="The key of every record.")] = None,
    key_type: KeyType = None,
    value_type: ValueType = None,
    schema: Annotated[
        str | None,
        typer.Option(
            "--schema", metavar="SUBJECT",
            help="With `--value avro`, `protobuf` or `json-schema`: the subject with whose newest version values are "
            "written; default: `TOPIC-value`.",
        ),
    ] = None,
    key_schema: Annotated[
        str | None,
        typer.Option("--key-schema", metavar="SUBJECT", help="The same for keys; default: `TOPIC-key`."),
    ] = None,
    log_dir: LogDir = None,
) -> None:  # fmt: skip
    """Write each line of standard input as one record.

    With `--value avro`, `protobuf` or `json-schema`, a value is JSON, in which logical types are texts in ISO form, or
    numbers in the form of Avro, and bytes are base64. A value of an Avro union may be tagged with the name of its type:
    `{"string": "x"}`.

    Examples: `kstreams produce lines < book.txt`, `echo 'EWR:{"wind": 20}' | kstreams produce weather -s :`,
    `kstreams produce images --file photo.jpg --whole --key photo`,
    `kstreams produce weather --csv --file weather.csv --key-column station --timestamp-column time`,
    `echo '{"id": 7, "price": 12.5}' | kstreams produce orders --value avro --schema orders-value`
    """
    table = Table(key_column, timestamp_column, value_column, delimiter)
    columns = columns or []
    _check(_form(as_json, as_csv, separator, whole), key)
    _check_table(as_csv, table, columns)
    if as_csv and value_column is None:
        value_type = value_type or "json"
    topic_home = home_named(log_dir)
    home = opened(topic_home)
    with home.admin() as admin:
        types = _types(admin, topic, TopicTypes(key_type, value_type), whole)
    with home.producer() as producer, ExitStack() as resources:
        of_key, of_value = resources.enter_context(uses_of(topic, topic_home, log_dir))
        encoders = RecordEncoders(
            topic_encoders(types.key or AUTO, of_key, key_schema),
            topic_encoders(types.value or AUTO, of_value, schema),
        )
        inputs = _inputs(files or [], resources)
        if as_csv:
            rows = CsvRows(inputs, _character(delimiter), _column_types(columns))
            sys.stderr.write(f"columns: {_described_columns(rows)}\n")
            count = _count(_send_rows(producer, topic, rows, table, encoders))
        else:
            send = _objects(producer, topic, encoders) if as_json else _lines(producer, topic, separator, key, encoders)
            count = _count(_send_all(_whole(inputs) if whole else _lines_of(inputs), send))
        producer.flush()
    sys.stderr.write(f"wrote {counted(count, 'record')} to {topic}\n")


def _inputs(files: Sequence[Path], resources: ExitStack) -> list[IO[bytes]]:
    """Open the files, or standard input if there are none."""
    return [resources.enter_context(path.open("rb")) for path in files] or [_standard_input()]


def _described_columns(rows: CsvRows) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in rows.types.items())


class RecordEncoders(NamedTuple):
    """The encoders of keys and values."""

    key: Encoders
    value: Encoders


class Table(NamedTuple):
    """The roles of the columns of a CSV file."""

    key: str | None
    timestamp: str | None
    value: str | None
    delimiter: str

    def named(self) -> list[str]:
        """Return the columns with a role."""
        return [name for name in self[:3] if name is not None]


def _form(as_json: bool, as_csv: bool, separator: str | None, whole: bool) -> str | None:
    """Return the option that determines the form of the input, if there is one."""
    if separator == "":
        raise typer.BadParameter("it is empty: name what stands between key and value", param_hint="--separator")
    forms = {"--json": as_json, "--csv": as_csv, "--separator": separator is not None, "--whole": whole}
    names = [name for name, is_chosen in forms.items() if is_chosen]
    if len(names) > 1:
        raise typer.BadParameter(f"{' and '.join(names)} exclude each other", param_hint=names[0])
    return names[0] if names else None


def _check(form: str | None, key: str | None) -> None:
    if key is not None and form in ("--json", "--csv", "--separator"):
        raise typer.BadParameter(f"with {form}, each line has its own key", param_hint="--key")


def _check_table(as_csv: bool, table: Table, columns: list[str]) -> None:
    if not as_csv and (table.named() or columns or table.delimiter != ","):
        raise typer.BadParameter("columns are those of CSV: add --csv", param_hint="--csv")
    _character(table.delimiter)


def _character(delimiter: str) -> str:
    character = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
    if len(character) != 1 or character in '"\r\n':
        raise typer.BadParameter(f"{delimiter!r} is not one character, as ';' or tab", param_hint="--delimiter")
    return character


def _column_types(columns: list[str]) -> dict[str, str]:
    types = {}
    for column in columns:
        name, equals, kind = column.rpartition("=")
        if not equals:
            raise typer.BadParameter(f"{column!r} is not NAME=TYPE", param_hint="--column")
        types[name] = checked_type(kind)
    return types


def _types(admin: Admin, topic: str, requested: TopicTypes, whole: bool) -> TopicTypes:
    """Return the types of keys and values. Add missing types to the settings of a topic without records."""
    described = admin.describe_topic(topic)
    declared = types_of(described.config)
    if not holds_records(admin, described):
        new_key = _declarable(requested.key) if declared.key is None else None
        new_value = _declarable(requested.value) if declared.value is None else None
        store_types(admin, topic, TopicTypes(new_key, new_value))
    default_value = RAW if whole else _known(declared.value)
    return TopicTypes(requested.key or _known(declared.key), requested.value or default_value)


def _declarable(kind: str | None) -> str | None:
    """Return the type, or None for a notation of bytes."""
    return None if kind in (AUTO, RAW, HEX) else kind


def _known(declared: str | None) -> str:
    return AUTO if declared in (None, MIXED) else str(declared)


def _standard_input() -> IO[bytes]:
    if sys.stdin is None or sys.stdin.closed:
        raise KStreamsError("standard input is closed: give lines by a pipe, or name a file with --file")
    if sys.stdin.isatty():
        sys.stderr.write("each line becomes a record; Ctrl-D ends the input\n")
    return sys.stdin.buffer


def _lines_of(inputs: Iterable[IO[bytes]]) -> Iterator[bytes]:
    for lines in inputs:
        for line in lines:
            yield line.rstrip(b"\r\n")


def _whole(inputs: Iterable[IO[bytes]]) -> Iterator[bytes]:
    return (file.read() for file in inputs)


def _count(numbers: Iterator[int]) -> int:
    """Return the number of written records, and report the progress every few seconds."""
    count = 0
    until = monotonic() + _PROGRESS_INTERVAL_S
    for count in numbers:
        if count % _RECORDS_PER_CHECK == 0 and monotonic() > until:
            sys.stderr.write(f"{count:,} records so far\n")
            until = monotonic() + _PROGRESS_INTERVAL_S
    return count


def _send_all(records: Iterable[bytes], send: Send) -> Iterator[int]:
    for number, record in enumerate(records, 1):
        with _at_line(number):
            send(record)
        yield number


@contextmanager
def _at_line(line: int) -> Iterator[None]:
    """Name the line in the error of a record that cannot be written."""
    try:
        yield
    except (KStreamsError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise KStreamsError(f"line {line} of the input was not written, nor what follows it: {error}") from error


def _send_rows(producer: Producer, topic: str, rows: CsvRows, table: Table, encoders: RecordEncoders) -> Iterator[int]:
    require_columns(table.named(), rows.columns)
    key_bytes = encoders.key.line
    value_bytes = encoders.value.line
    for number, row in enumerate(rows, 1):
        key = row.cells[table.key] if table.key else ""
        with _at_line(row.line):
            value = (
                encoders.value.json(row.values) if table.value is None else value_bytes(row.cells[table.value].encode())
            )
            time_ms = None if table.timestamp is None else instant_ms(row.cells[table.timestamp])
            producer.send(topic, key_bytes(key.encode()) if key else None, value, timestamp=time_ms)
        yield number


def _lines(producer: Producer, topic: str, separator: str | None, key: str | None, encoders: RecordEncoders) -> Send:
    key_bytes = encoders.key.line
    value_bytes = encoders.value.line
    separator_bytes = None if separator is None else separator.encode()
    common_key = None if key is None else key_bytes(key.encode())

    def send(line: bytes) -> None:
        if separator_bytes is None:
            producer.send(topic, common_key, value_bytes(line))
            return
        key, present_separator, value = line.partition(separator_bytes)
        if not present_separator:
            raise SerdeError(f"it has no {separator!r} between key and value")
        producer.send(topic, key_bytes(key), value_bytes(value))

    return send


def _objects(producer: Producer, topic: str, encoders: RecordEncoders) -> Send:
    read = json_decoder(InputRecord).decode

    def send(line: bytes) -> None:
        record = read(line)
        producer.send(
            topic,
            encoders.key.json(record.key),
            encoders.value.json(record.value),
            timestamp=None if record.timestamp is None else instant_ms(record.timestamp),
            headers=_headers(record),
            partition=record.partition,
        )

    return send


def _headers(record: InputRecord) -> Headers:
    return tuple((name, encode_json(value, AUTO)) for name, value in record.headers)
