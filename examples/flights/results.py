"""Reads the result topics of the flights example as final tables, and prints the top of each.

python examples/flights/results.py            # of the native engine
python examples/flights/results.py spark-     # of Spark: the same topics under a prefix
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from app import AirlineDelays, HourlyDelays, WindyDeparture
from rich.console import Console
from rich.table import Table

from kstreams.config import Config
from kstreams.kernel.batch import TopicPartition
from kstreams.log import home_of
from kstreams.log.api import Log


class Result(NamedTuple):
    """A result topic: the type of its values, what tells its rows apart (nothing: every record is a row), its order."""

    topic: str
    type: type[msgspec.Struct]
    identity: tuple[str, ...]
    worst_by: str


RESULTS = (
    Result("delays-by-hour", HourlyDelays, ("window_start", "origin"), "mean_delay"),
    Result("delays-by-airline", AirlineDelays, ("airline",), "mean_delay"),
    Result("delayed-in-wind", WindyDeparture, (), "dep_delay"),
)


def home() -> Log:
    return home_of(Config.load()).open()


def final_table(log: Log, result: Result, prefix: str = "") -> list[Any]:
    """The rows that stand at the end, in order: of records with the same identity the last one."""
    rows = records(log, prefix + result.topic, result.type)
    if result.identity:
        rows = iter({tuple(getattr(row, name) for name in result.identity): row for row in rows}.values())
    return sorted(rows, key=msgspec.structs.astuple)


def records(log: Log, topic: str, kind: type[msgspec.Struct]) -> Iterator[Any]:
    decode = msgspec.json.Decoder(kind).decode
    with log.admin() as admin:
        members = [TopicPartition(topic, number) for number in range(admin.describe_topic(topic).partitions)]
        ends = admin.end_offsets(members)
    with log.consumer() as consumer:
        consumer.assign(members)
        while any(consumer.position(member) < end for member, end in ends.items()):
            for batch in consumer.poll(1.0):
                yield from map(decode, batch.values.to_pylist())


def print_top(result: Result, rows: list[Any], title: str, count: int = 5) -> None:
    table = Table(title=f"{title} ({len(rows):,} rows)", title_justify="left")
    for name in result.type.__struct_fields__:
        table.add_column(name)
    for row in sorted(rows, key=lambda row: getattr(row, result.worst_by), reverse=True)[:count]:
        table.add_row(
            *(f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in msgspec.structs.astuple(row))
        )
    Console().print(table)


def main(prefix: str = "") -> None:
    log = home()
    for result in RESULTS:
        print_top(result, final_table(log, result, prefix), prefix + result.topic)


if __name__ == "__main__":
    main(*sys.argv[1:2])
