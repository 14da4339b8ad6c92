"""Readings as Avro: JSON becomes records of a schema in a file, and the extremes of each room and day those of classes.

The registry of schemas lies in the embedded log, so no server is needed:
`kstreams run examples/avro/readings.py --until-end`.
"""

import enum
from datetime import date, datetime
from pathlib import Path

import msgspec

import kstreams as ks


class State(enum.Enum):
    COLD = "COLD"
    MILD = "MILD"
    WARM = "WARM"


class Measured(msgspec.Struct, frozen=True):
    measured: datetime
    celsius: float


class Reading(msgspec.Struct, frozen=True):
    celsius: float
    measured: datetime
    state: State


class Day(msgspec.Struct, frozen=True):
    room: str
    date: date


class Extremes(msgspec.Struct, frozen=True):
    coldest: float
    warmest: float


def reading(measured: Measured) -> Reading:
    celsius = measured.celsius
    state = State.COLD if celsius < 10 else State.MILD if celsius < 20 else State.WARM
    return Reading(celsius, measured.measured, state)


def day(room: str, reading: Reading) -> Day:
    return Day(room, reading.measured.date())


config = {"application.id": "avro-readings", "schema.registry.url": "local:"}
topology = ks.StreamsBuilder()

readings = topology.stream("readings", key=str, value=Measured).map_values(
    reading, value=ks.Avro(Path(__file__).with_name("reading.avsc"), type=Reading)
)
readings.to("avro-readings")

(
    readings.group_by(day, key=ks.Avro(Day))
    .aggregate(
        coldest=ks.col("celsius").min(),
        warmest=ks.col("celsius").max(),
        value=ks.Avro(Extremes),
        materialized="extremes",
    )
    .to_stream()
    .to("avro-extremes")
)
