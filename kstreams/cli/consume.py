"""`kstreams consume`: prints the records of a topic."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from kstreams.batch import Batch, TopicPartition
from kstreams.cli.home import open_home
from kstreams.cli.options import AsJson, LogDir, TopicName
from kstreams.cli.output import json_line
from kstreams.cli.values import ValueType, decoder
from kstreams.errors import KStreamsError, SerdeError
from kstreams.log.api import Consumer, Log
from kstreams.record import Headers

POLL_SECONDS = 0.5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Show = Callable[[dict[str, Any]], str]


def consume(
    topic: TopicName,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start with the oldest record; default: with the next one.")
    ] = False,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Stop at the end that the topic has now; default: wait for more.")
    ] = False,
    as_json: AsJson = False,
    partition: Annotated[int | None, typer.Option("--partition", "-p", min=0, help="Only this partition.")] = None,
    offset: Annotated[int | None, typer.Option(min=0, help="Start at this offset; needs --partition.")] = None,
    limit: Annotated[int | None, typer.Option("--max", "-n", min=1, help="Stop after so many records.")] = None,
    key_type: Annotated[ValueType, typer.Option(help="What keys are read as.")] = ValueType.AUTO,
    value_type: Annotated[ValueType, typer.Option(help="What values are read as.")] = ValueType.AUTO,
    log_dir: LogDir = None,
) -> None:
    """Print records: time, partition@offset, key and value; or with `--json` all of them as objects.

    Examples: `kstreams consume delays-by-airline --from-beginning --until-end --json`,
    `kstreams consume word-counts --value-type int`
    """
    if offset is not None and partition is None:
        raise typer.BadParameter("an offset belongs to one partition: name it with --partition", param_hint="--offset")
    home = open_home(log_dir)
    members = _members(home, topic, partition)
    with home.consumer() as consumer:
        consumer.assign(members)
        _seek(consumer, members, from_beginning, offset)
        ends = _ends(home, members) if until_end else None
        rows = _rows(_batches(consumer, ends), decoder(key_type), decoder(value_type))
        show = json_line if as_json else _line
        for count, row in enumerate(rows, 1):
            sys.stdout.write(show(row))
            if count == limit:
                break


def _members(home: Log, topic: str, partition: int | None) -> list[TopicPartition]:
    with home.admin() as admin:
        partitions = admin.describe_topic(topic).partitions
    if partition is None:
        return [TopicPartition(topic, number) for number in range(partitions)]
    if partition >= partitions:
        raise KStreamsError(f"{topic} has partitions 0 to {partitions - 1}, not {partition}")
    return [TopicPartition(topic, partition)]


def _seek(consumer: Consumer, members: list[TopicPartition], from_beginning: bool, offset: int | None) -> None:
    if offset is not None:
        consumer.seek(members[0], offset)
    elif from_beginning:
        consumer.seek_to_beginning(members)
    else:
        consumer.seek_to_end(members)


def _ends(home: Log, members: list[TopicPartition]) -> dict[TopicPartition, int]:
    with home.admin() as admin:
        return admin.end_offsets(members)


def _batches(consumer: Consumer, ends: Mapping[TopicPartition, int] | None) -> Iterator[Batch]:
    """What comes, for ever; with `ends`, up to these offsets."""
    while ends is None or any(consumer.position(member) < end for member, end in ends.items()):
        found = consumer.poll(POLL_SECONDS)
        if not found:
            sys.stdout.flush()
        for batch in found:
            yield batch if ends is None else _before(batch, ends[batch.source])


def _before(batch: Batch, end: int) -> Batch:
    return batch.slice(0, int((batch.offsets < end).sum()))


def _rows(
    batches: Iterator[Batch], read_key: Callable[[bytes | None], Any], read_value: Callable[[bytes | None], Any]
) -> Iterator[dict[str, Any]]:
    for batch in batches:
        for offset, row in zip(batch.offsets.tolist(), batch.rows(), strict=True):
            try:
                key, value = read_key(row.key), read_value(row.value)
            except SerdeError as error:
                raise SerdeError(f"{batch.source}@{offset}: {error}; try another --key-type or --value-type") from error
            yield {
                "topic": batch.source.topic,
                "partition": batch.source.partition,
                "offset": offset,
                "timestamp": row.timestamp,
                "key": key,
                "value": value,
                "headers": _headers(row.headers),
            }


def _headers(headers: Headers) -> list[list[Any]]:
    show = decoder(ValueType.AUTO)
    return [[name, show(value)] for name, value in headers]


def _line(row: dict[str, Any]) -> str:
    place = f"{row['partition']}@{row['offset']}"
    return f"{_time(row['timestamp'])}\t{place}\t{_text(row['key'])}\t{_text(row['value'])}\n"


def _time(timestamp_ms: int) -> str:
    try:
        return (_EPOCH + timedelta(milliseconds=timestamp_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:
        return f"{timestamp_ms} ms"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json_line(value).rstrip("\n")
