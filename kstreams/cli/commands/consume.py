"""`kstreams consume`: prints the records of a topic."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from kstreams.cli.home import home_named, opened
from kstreams.cli.options import AsJson, ConsumedKeyType, LogDir, TopicName, ValueType
from kstreams.cli.output import json_line, reader_is_gone
from kstreams.cli.registry import uses_of
from kstreams.errors import KStreamsError, SerdeError, UnknownTopicError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.api import Consumer, Log, TopicDescription
from kstreams.log.topic_types import MIXED, types_of
from kstreams.processor.api.dead_letters import DeadLetter
from kstreams.record import Headers
from kstreams.serdes.base import SerdeUse
from kstreams.serdes.byte_kinds import AUTO, decoder, is_known
from kstreams.serdes.topic_decoders import Decode, needs_registry, topic_decoder

Position = tuple[TopicPartition, int]
Reader = Callable[[bytes | None, Headers, Position], object]


def reader_of(side: str, requested: str | None, declared: str | None, use: SerdeUse | None = None) -> Reader:
    """Return the function that decodes keys or values.

    Bytes that are not of the requested type are an error. If bytes are not of the type in the topic's settings, their
    type is guessed, and the first such record causes a warning on standard error.

    Parameters
    ----------
    side : {"key", "value"}
    requested : str or None
        The type on the command line.
    declared : str or None
        The type in the settings of the topic.
    use : SerdeUse, optional
        The topic with its schema registry, if there is one.

    Examples
    --------
    >>> read = reader_of("value", None, "int")
    >>> read(bytes(8), (), (TopicPartition("numbers", 0), 0))
    0
    """
    if requested is not None:
        if use is None and needs_registry(requested):
            raise SerdeError(f"{requested} is read with a schema registry: set schema.registry.url")
        return _strict(side, topic_decoder(requested, use, _warn))
    if declared == MIXED:
        sys.stderr.write(f"kstreams: the {side}s were written as several types: guessed, unless --{side}-type says\n")
    if declared is None or declared == MIXED or not is_known(declared):
        guess = topic_decoder(AUTO, use, _warn)
        return lambda data, headers, position: guess(data, headers)
    return _lenient(side, declared, use)


def _warn(error: KStreamsError) -> None:
    sys.stderr.write(f"kstreams: what is shown is guessed without the schema registry: {error}\n")


def _strict(side: str, read: Decode) -> Reader:
    def checked(data: bytes | None, headers: Headers, position: Position) -> object:
        try:
            return read(data, headers)
        except SerdeError as error:
            raise SerdeError(f"{position[0]}@{position[1]}: {error}; try another --{side}-type") from error

    return checked


def _lenient(side: str, declared: str, use: SerdeUse | None) -> Reader:
    read = topic_decoder(declared, use)
    guess = topic_decoder(AUTO, use, _warn)
    warned = False

    def read_or_guess(data: bytes | None, headers: Headers, position: Position) -> object:
        nonlocal warned
        try:
            return read(data, headers)
        except SerdeError:
            if not warned:
                record = f"{position[0]}@{position[1]}"
                sys.stderr.write(
                    f"kstreams: the {side} of {record} is no {declared}, as the topic's settings say: it is guessed, "
                    "as are others of the kind\n"
                )
            warned = True
            return guess(data, headers)

    return read_or_guess


POLL_SECONDS = 0.5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Show = Callable[[dict[str, Any]], str]


def consume(
    topic: TopicName,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start at the oldest record; default: at the next one.")
    ] = False,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Stop at the current end of the topic; default: wait for more records.")
    ] = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", "-f", help="Wait for more records (the default), and for a topic that does not exist yet."
        ),
    ] = False,
    as_json: AsJson = False,
    partition: Annotated[int | None, typer.Option("--partition", "-p", min=0, help="Only this partition.")] = None,
    offset: Annotated[int | None, typer.Option(min=0, help="Start at this offset; requires --partition.")] = None,
    limit: Annotated[int | None, typer.Option("--max", "-n", min=1, help="Stop after this number of records.")] = None,
    key_type: ConsumedKeyType = None,
    value_type: ValueType = None,
    dead_letters: Annotated[
        bool,
        typer.Option(
            "--dead-letters", help="Also print the failure of each record, from the headers of its dead letter."
        ),
    ] = False,
    log_dir: LogDir = None,
) -> None:
    """Print records: time, partition@offset, key and value; with `--json`, whole records as JSON objects.

    Keys and values are decoded by the types in the settings of the topic, which its writers record. Without such types,
    bytes that begin with the id of a schema of the schema registry are decoded with the schema.

    With `--dead-letters`, the record that failed, the operator and the error follow, as the headers of kstreams, Kafka
    Streams or Kafka Connect say.

    Examples: `kstreams consume delays-by-airline --from-beginning --until-end --json`,
    `kstreams consume word-counts --follow`, `kstreams consume orders --key str --value avro --from-beginning`
    """
    if offset is not None and partition is None:
        raise typer.BadParameter("an offset belongs to one partition: name it with --partition", param_hint="--offset")
    if offset is not None and from_beginning:
        raise typer.BadParameter("--offset and --from-beginning exclude each other", param_hint="--offset")
    if follow and until_end:
        raise typer.BadParameter("--follow and --until-end exclude each other", param_hint="--follow")
    topic_home = home_named(log_dir, create=follow)
    home = opened(topic_home)
    description, is_new = _awaited(home, topic) if follow else (_described(home, topic), False)
    sources = _selected_partitions(description, partition)
    types = types_of(description.config)
    with home.consumer() as consumer, uses_of(topic, topic_home, log_dir) as uses:
        key_reader = reader_of("key", key_type, types.key, uses[0])
        value_reader = reader_of("value", value_type, types.value, uses[1])
        consumer.assign(sources)
        _seek(consumer, sources, from_beginning or is_new, offset)
        ends = _ends(home, sources) if until_end else None
        show = json_line if as_json else _line
        rows = _rows(_batches(consumer, ends), key_reader, value_reader, with_failures=dead_letters)
        for count, row in enumerate(rows, 1):
            sys.stdout.write(show(row))
            if count == limit:
                break


def _described(home: Log, topic: str) -> TopicDescription:
    with home.admin() as admin:
        return admin.describe_topic(topic)


def _awaited(home: Log, topic: str) -> tuple[TopicDescription, bool]:
    """Wait until the topic exists. Return its description, and True if it is new, so that all its records are new."""
    from kstreams.kernel.clock import SystemClock

    clock = SystemClock()
    is_missing = False
    while True:
        try:
            return _described(home, topic), is_missing
        except UnknownTopicError as error:
            if not is_missing:
                sys.stderr.write(f"kstreams: {error} Waiting for it.\n")
            is_missing = True
        _check_reader()
        clock.sleep(POLL_SECONDS)


def _selected_partitions(topic: TopicDescription, partition: int | None) -> list[TopicPartition]:
    if partition is None:
        return [TopicPartition(topic.name, number) for number in range(topic.partitions)]
    if partition >= topic.partitions:
        raise KStreamsError(f"{topic.name} has partitions 0 to {topic.partitions - 1}, not {partition}")
    return [TopicPartition(topic.name, partition)]


def _seek(consumer: Consumer, sources: list[TopicPartition], from_beginning: bool, offset: int | None) -> None:
    if offset is not None:
        _seek_to_offset(consumer, sources[0], offset)
    elif from_beginning:
        consumer.seek_to_beginning(sources)
    else:
        consumer.seek_to_end(sources)


def _seek_to_offset(consumer: Consumer, source: TopicPartition, offset: int) -> None:
    """Seek to an offset of the partition or to its end."""
    consumer.seek_to_beginning([source])
    first = consumer.position(source)
    consumer.seek_to_end([source])
    end = consumer.position(source)
    if not first <= offset <= end:
        raise KStreamsError(f"{source} has no offset {offset}: its records begin at {first} and the next one is {end}")
    consumer.seek(source, offset)


def _ends(home: Log, sources: list[TopicPartition]) -> dict[TopicPartition, int]:
    with home.admin() as admin:
        return admin.end_offsets(sources)


def _batches(consumer: Consumer, ends: Mapping[TopicPartition, int] | None) -> Iterator[Batch]:
    """Yield batches for ever, or up to the offsets `ends`. Records are printed before the next wait."""
    while ends is None or any(consumer.position(source) < end for source, end in ends.items()):
        for batch in consumer.poll(POLL_SECONDS):
            yield batch if ends is None else _rows_before(batch, ends[batch.source])
        sys.stdout.flush()
        _check_reader()


def _check_reader() -> None:
    if reader_is_gone(sys.stdout):
        raise BrokenPipeError(errno.EPIPE, "nobody reads the output any more")


def _rows_before(batch: Batch, end: int) -> Batch:
    return batch.slice(0, int((batch.offsets < end).sum()))


def _rows(
    batches: Iterator[Batch], read_key: Reader, read_value: Reader, *, with_failures: bool
) -> Iterator[dict[str, Any]]:
    for batch in batches:
        for offset, row in zip(batch.offsets.tolist(), batch.rows(), strict=True):
            position = (batch.source, offset)
            yield {
                "topic": batch.source.topic,
                "partition": batch.source.partition,
                "offset": offset,
                "timestamp": row.timestamp,
                "key": read_key(row.key, row.headers, position),
                "value": read_value(row.value, row.headers, position),
                "headers": _headers(row.headers),
                **(_failure(row.headers) if with_failures else {}),
            }


def _failure(headers: Headers) -> dict[str, Any]:
    letter = DeadLetter.of(headers)
    return {"failure": None if letter is None else asdict(letter)}


def _headers(headers: Headers) -> list[list[object]]:
    show = decoder(AUTO)
    return [[name, show(value)] for name, value in headers]


def _line(row: dict[str, Any]) -> str:
    position = f"{row['partition']}@{row['offset']}"
    line = f"{time_text(row['timestamp'])}\t{position}\t{_text(row['key'])}\t{_text(row['value'])}"
    if "failure" not in row:
        return f"{line}\n"
    failure = "no dead letter" if row["failure"] is None else str(DeadLetter(**row["failure"]))
    return f"{line}\t{failure}\n"


def time_text(timestamp_ms: int) -> str:
    """Return a time as ISO 8601, or as a number if it is beyond the calendar."""
    try:
        return (_EPOCH + timedelta(milliseconds=timestamp_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:
        return f"{timestamp_ms} ms"


def _text(value: object) -> str:
    """Return a value as text: text unchanged, a windowed key as `key@start/end`, other values as JSON."""
    if isinstance(value, dict) and value.keys() == {"key", "window"} and isinstance(value["window"], dict):
        window = value["window"]
        return f"{_text(value['key'])}@{time_text(window['start_ms'])}/{time_text(window['end_ms'])}"
    return value if isinstance(value, str) else json_line(value).rstrip("\n")
