"""`kstreams produce`: writes the lines of standard input to a topic."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import msgspec
import typer

from kstreams.cli.home import open_home
from kstreams.cli.options import LogDir, TopicName
from kstreams.cli.values import ValueType, encode_json, encoder
from kstreams.errors import KStreamsError, SerdeError
from kstreams.log.api import Producer
from kstreams.record import Headers


class InputRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A line of `produce --json`: what `consume --json` prints, whose topic and offset are ignored."""

    key: Any = None
    value: Any = None
    timestamp: int | None = None
    headers: list[tuple[str, Any]] = []
    partition: int | None = None
    topic: str | None = None
    offset: int | None = None


Send = Callable[[str], None]


def produce(
    topic: TopicName,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Lines are objects with key, value, timestamp, headers, as `consume` prints them."),
    ] = False,
    separator: Annotated[
        str | None,
        typer.Option(
            "--separator", "-s", metavar="TEXT", help="What parts key from value; without it, lines are values."
        ),
    ] = None,
    key_type: Annotated[ValueType, typer.Option(help="What keys are written as.")] = ValueType.AUTO,
    value_type: Annotated[ValueType, typer.Option(help="What values are written as.")] = ValueType.AUTO,
    log_dir: LogDir = None,
) -> None:
    """Write each line of standard input as one record.

    Examples: `kstreams produce lines < book.txt`, `echo 'EWR:{"wind": 20}' | kstreams produce weather -s :`
    """
    home = open_home(log_dir)
    with home.admin() as admin:
        admin.describe_topic(topic)
    with home.producer() as producer:
        send = (
            _objects(producer, topic, key_type, value_type)
            if as_json
            else _lines(producer, topic, separator, encoder(key_type), encoder(value_type))
        )
        count = _send_all(sys.stdin, send)
        producer.flush()
    sys.stderr.write(f"wrote {count:,} record{'' if count == 1 else 's'} to {topic}\n")


def _send_all(lines: Iterable[str], send: Send) -> int:
    number = 0
    try:
        for line in lines:
            number += 1
            send(line.rstrip("\r\n"))
    except (SerdeError, msgspec.DecodeError) as error:
        raise KStreamsError(f"line {number} of the input was not written, nor what follows it: {error}") from error
    return number


def _lines(
    producer: Producer,
    topic: str,
    separator: str | None,
    key_bytes: Callable[[str], bytes],
    value_bytes: Callable[[str], bytes],
) -> Send:
    def send(line: str) -> None:
        if separator is None:
            producer.send(topic, None, value_bytes(line))
            return
        key, parted, value = line.partition(separator)
        if not parted:
            raise SerdeError(f"it has no {separator!r} between key and value")
        producer.send(topic, key_bytes(key), value_bytes(value))

    return send


def _objects(producer: Producer, topic: str, key_type: ValueType, value_type: ValueType) -> Send:
    read = msgspec.json.Decoder(InputRecord).decode

    def send(line: str) -> None:
        record = read(line)
        producer.send(
            topic,
            encode_json(record.key, key_type),
            encode_json(record.value, value_type),
            timestamp=record.timestamp,
            headers=_headers(record),
            partition=record.partition,
        )

    return send


def _headers(record: InputRecord) -> Headers:
    return tuple((name, encode_json(value, ValueType.AUTO)) for name, value in record.headers)
