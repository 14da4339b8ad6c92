"""`kstreams parked`: shows the records of a parking topic, sends them back to their operators, discards them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import typer

from kstreams.cli.commands.consume import Reader, reader_of, time_text
from kstreams.cli.home import open_home
from kstreams.cli.options import AsJson, ConsumedKeyType, LogDir, TopicName, ValueType
from kstreams.cli.output import counted, json_line, print_rows
from kstreams.errors import LogError
from kstreams.kernel.batch import Row, TopicPartition
from kstreams.log.api import Consumer, Log, Producer
from kstreams.log.naming import did_you_mean
from kstreams.processor.api.error_handlers import EXCEPTION, OFFSET, OPERATOR, PARTITION, STACKTRACE, TOPIC
from kstreams.processor.context import parking
from kstreams.record import Headers

_POLL_SECONDS = 0.5

parked = typer.Typer(no_args_is_help=True)

Place = Annotated[str, typer.Argument(metavar="RECORD", help="Partition and offset of the record, such as `0@7`.")]
Places = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RECORD]...", help="Partitions and offsets of records, such as `0@7`; or use --all."),
]
All = Annotated[bool, typer.Option("--all", help="All parked records of the topic.")]


class ParkedRecord(NamedTuple):
    """A record of a parking topic that was neither retried nor discarded.

    Parameters
    ----------
    source : TopicPartition
    offset : int
        Its place in the parking topic.
    row : Row
        The serialized record.
    history : dict of str to str
        The headers of its errors.
    """

    source: TopicPartition
    offset: int
    row: Row
    history: dict[str, str]

    @property
    def place(self) -> str:
        """The partition and offset, as the user names the record."""
        return f"{self.source.partition}@{self.offset}"


def parked_records(log: Log, topic: str) -> dict[str, ParkedRecord]:
    """Return the parked records of a topic by partition and offset, in this order.

    Raises
    ------
    UnknownTopicError
        If there is no such topic.
    """
    records: dict[str, ParkedRecord] = {}
    ended: set[str] = set()
    with log.admin() as admin, log.consumer() as consumer:
        partitions = admin.describe_topic(topic).partitions
        sources = [TopicPartition(topic, number) for number in range(partitions)]
        consumer.assign(sources)
        consumer.seek_to_beginning(sources)
        for record in _read(consumer, sources):
            mark = record.history.get(parking.RETRIED) or record.history.get(parking.DISCARDED)
            if mark is not None:
                ended.add(mark)
            elif parking.ATTEMPTS in record.history:
                records[record.place] = record
    places = sorted(records.keys() - ended, key=_order)
    return {place: records[place] for place in places}


def _read(consumer: Consumer, sources: Sequence[TopicPartition]) -> Iterator[ParkedRecord]:
    ends = consumer.end_offsets(sources)
    while any(consumer.position(source) < ends[source] for source in sources):
        for batch in consumer.poll(_POLL_SECONDS):
            for offset, row in zip(batch.offsets.tolist(), batch.rows(), strict=True):
                yield ParkedRecord(batch.source, offset, row, parking.history(row.headers))


def _order(place: str) -> tuple[int, int]:
    partition, _, offset = place.partition("@")
    return int(partition), int(offset)


@parked.command("list")
def list_(topic: TopicName, as_json: AsJson = False, key_type: ConsumedKeyType = None, log_dir: LogDir = None) -> None:
    """List parked records: key, input record, operator, attempts, times of the first and last one, error.

    Example: `kstreams parked list orders-parked`
    """
    with open_home(log_dir) as log:
        records = parked_records(log, topic).values()
        read_key = reader_of("key", key_type, None)
        print_rows((_summary(record, read_key) for record in records), as_json=as_json, title=topic)


@parked.command()
def show(
    topic: TopicName,
    place: Place,
    key_type: ConsumedKeyType = None,
    value_type: ValueType = None,
    log_dir: LogDir = None,
) -> None:
    """Show one parked record as a JSON object: with its value, its headers, and the stack trace of its last error.

    Example: `kstreams parked show orders-parked 0@7`
    """
    with open_home(log_dir) as log:
        record = _selected(parked_records(log, topic), topic, [place], all_records=False)[0]
        read_key = reader_of("key", key_type, None)
        value = _decoded(reader_of("value", value_type, None), record, record.row.value)
        whole = {
            **_summary(record, read_key),
            "value": value,
            "timestamp": record.row.timestamp,
            "headers": _texts(parking.own_headers(record.row.headers)),
            "stack": record.history.get(STACKTRACE),
        }
        typer.echo(json_line(whole), nl=False)


@parked.command()
def retry(topic: TopicName, places: Places = None, all_records: All = False, log_dir: LogDir = None) -> None:
    """Send parked records back into the operators that parked them, where they are called as if they were new.

    Operators before it do not process the records again. They are processed when the application runs.

    Examples: `kstreams parked retry orders-parked 0@7 2@1`, `kstreams parked retry orders-parked --all`
    """
    with open_home(log_dir) as log:
        chosen = _selected(parked_records(log, topic), topic, places, all_records=all_records)
        with log.producer() as producer:
            for record in chosen:
                _send_back(producer, record)
            producer.flush()
    typer.echo(f"sent back {counted(len(chosen), 'record')}", err=True)


@parked.command()
def discard(
    topic: TopicName,
    places: Places = None,
    all_records: All = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    log_dir: LogDir = None,
) -> None:
    """Discard parked records: they are no longer listed, and cannot be retried.

    They stay in the topic until its retention deletes them.

    Examples: `kstreams parked discard orders-parked 0@7`, `kstreams parked discard orders-parked --all --yes`
    """
    with open_home(log_dir) as log:
        chosen = _selected(parked_records(log, topic), topic, places, all_records=all_records)
        if chosen and not yes:
            typer.confirm(f"Discard {counted(len(chosen), 'record')} of {topic}?", abort=True, err=True)
        with log.producer() as producer:
            for record in chosen:
                headers = parking.discard_mark(record.place)
                producer.send(topic, None, None, headers=headers, partition=record.source.partition)
            producer.flush()
    typer.echo(f"discarded {counted(len(chosen), 'record')}", err=True)


def _send_back(producer: Producer, record: ParkedRecord) -> None:
    row = record.row
    producer.send(
        record.source.topic,
        row.key,
        row.value,
        timestamp=row.timestamp,
        headers=parking.retry_mark(record.place, row.headers),
        partition=parking.task_partition(record.history),
    )


def _selected(
    records: dict[str, ParkedRecord], topic: str, places: Sequence[str] | None, *, all_records: bool
) -> list[ParkedRecord]:
    """Return the records that the user names.

    Raises
    ------
    LogError
        If one of them is not a parked record of the topic.
    """
    if bool(places) == all_records:
        raise typer.BadParameter("name records, such as 0@7, or give --all", param_hint="RECORD")
    for place in places or ():
        if place not in records:
            hint = did_you_mean(place, records)
            raise LogError(
                f"there is no parked record {place} in {topic}.{hint} `kstreams parked list {topic}` has all"
            )
    return [records[place] for place in dict.fromkeys(places or records)]


def _summary(record: ParkedRecord, read_key: Reader) -> dict[str, object]:
    told = record.history
    return {
        "record": record.place,
        "key": _decoded(read_key, record, record.row.key),
        "input": f"{told.get(TOPIC, '(none)')}-{told.get(PARTITION)}@{told.get(OFFSET)}",
        "operator": told.get(OPERATOR),
        "attempts": int(told[parking.ATTEMPTS]),
        "first": time_text(int(told[parking.FIRST_TIME])),
        "last": time_text(int(told[parking.LAST_TIME])),
        "error": told.get(EXCEPTION),
    }


def _decoded(read: Reader, record: ParkedRecord, data: bytes | None) -> Any:
    return read(data, record.row.headers, (record.source, record.offset))


def _texts(headers: Headers) -> list[list[str | None]]:
    return [[name, None if value is None else value.decode(errors="replace")] for name, value in headers]
