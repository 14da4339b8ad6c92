"""`kstreams produce`: writes lines, objects or whole files to a topic."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Annotated, Any

import msgspec
import typer

from kstreams.cli.home import open_home
from kstreams.cli.options import KeyType, LogDir, TopicName, ValueType
from kstreams.decoders import json_decoder
from kstreams.errors import KStreamsError, SerdeError
from kstreams.log.api import Admin, Producer
from kstreams.log.topic_types import MIXED, TopicTypes, holds_records, note_types, types_of
from kstreams.record import Headers
from kstreams.serdes.byte_kinds import AUTO, HEX, RAW, encode_json, encoder

_LATEST_MS = 2**63 - 1


class InputRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A line of `produce --json`: what `consume --json` prints, whose topic and offset are ignored."""

    key: Any = None
    value: Any = None
    timestamp: int | None = None
    headers: list[tuple[str, Any]] = []
    partition: int | None = None
    topic: str | None = None
    offset: int | None = None


Send = Callable[[bytes], None]


def produce(
    topic: TopicName,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Lines are objects with key, value, timestamp, headers, as `consume` prints them."),
    ] = False,
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
    log_dir: LogDir = None,
) -> None:  # fmt: skip
    """Write each line of standard input as one record.

    Examples: `kstreams produce lines < book.txt`, `echo 'EWR:{"wind": 20}' | kstreams produce weather -s :`,
    `kstreams produce images --file photo.jpg --whole --key photo`
    """
    _check(as_json, separator, whole, key)
    home = open_home(log_dir)
    with home.admin() as admin:
        types = _types(admin, topic, TopicTypes(key_type, value_type), whole)
    with home.producer() as producer, ExitStack() as opened:
        named: list[IO[bytes]] = [opened.enter_context(path.open("rb")) for path in files or ()]
        inputs = named or [_standard_input()]
        send = _objects(producer, topic, types) if as_json else _lines(producer, topic, separator, key, types)
        count = _send_all(_whole(inputs) if whole else _lines_of(inputs), send)
        producer.flush()
    sys.stderr.write(f"wrote {count:,} record{'' if count == 1 else 's'} to {topic}\n")


def _check(as_json: bool, separator: str | None, whole: bool, key: str | None) -> None:
    if separator == "":
        raise typer.BadParameter("it is empty: name what stands between key and value", param_hint="--separator")
    given = {"--json": as_json, "--separator": separator is not None, "--whole": whole}
    names = [name for name, is_given in given.items() if is_given]
    if len(names) > 1:
        raise typer.BadParameter(f"{' and '.join(names)} exclude each other", param_hint=names[0])
    if key is not None and (as_json or separator is not None):
        raise typer.BadParameter(f"with {names[0]}, each line has its own key", param_hint="--key")


def _types(admin: Admin, topic: str, asked: TopicTypes, whole: bool) -> TopicTypes:
    """What keys and values are written as; the settings of a topic without records get what they do not say."""
    described = admin.describe_topic(topic)
    noted = types_of(described.config)
    if not holds_records(admin, described):
        new = (_notable(kind) if known is None else None for kind, known in zip(asked, noted, strict=True))
        note_types(admin, topic, TopicTypes(*new))
    return TopicTypes(asked.key or _known(noted.key), asked.value or (RAW if whole else _known(noted.value)))


def _notable(kind: str | None) -> str | None:
    """The type of what is written, if it has one: others are ways to spell bytes."""
    return None if kind in (AUTO, RAW, HEX) else kind


def _known(noted: str | None) -> str:
    return AUTO if noted in (None, MIXED) else str(noted)


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


def _send_all(records: Iterable[bytes], send: Send) -> int:
    number = 0
    try:
        for record in records:
            number += 1
            send(record)
    except (KStreamsError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise KStreamsError(f"line {number} of the input was not written, nor what follows it: {error}") from error
    return number


def _lines(producer: Producer, topic: str, separator: str | None, key: str | None, types: TopicTypes) -> Send:
    key_bytes, value_bytes = encoder(types.key or AUTO), encoder(types.value or AUTO)
    parts_at = None if separator is None else separator.encode()
    fixed = None if key is None else key_bytes(key.encode())

    def send(line: bytes) -> None:
        if parts_at is None:
            producer.send(topic, fixed, value_bytes(line))
            return
        key, parted, value = line.partition(parts_at)
        if not parted:
            raise SerdeError(f"it has no {separator!r} between key and value")
        producer.send(topic, key_bytes(key), value_bytes(value))

    return send


def _objects(producer: Producer, topic: str, types: TopicTypes) -> Send:
    read = json_decoder(InputRecord).decode

    def send(line: bytes) -> None:
        record = read(line)
        producer.send(
            topic,
            encode_json(record.key, types.key or AUTO),
            encode_json(record.value, types.value or AUTO),
            timestamp=_checked_time(record.timestamp),
            headers=_headers(record),
            partition=record.partition,
        )

    return send


def _checked_time(timestamp_ms: int | None) -> int | None:
    if timestamp_ms is not None and not 0 <= timestamp_ms <= _LATEST_MS:
        raise KStreamsError(f"its timestamp {timestamp_ms} is no time: give the milliseconds since 1970-01-01T00:00Z")
    return timestamp_ms


def _headers(record: InputRecord) -> Headers:
    return tuple((name, encode_json(value, AUTO)) for name, value in record.headers)
