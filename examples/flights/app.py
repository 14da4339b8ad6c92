"""Delays of the flights that left New York in 2013: one topology for both engines.

Run it with `kstreams run examples/flights/app.py --until-end`, on Spark with `--engine spark` added. With `--serve` in
place of `--until-end`, `kstreams query delays-by-airline "JetBlue Airways"` answers while it runs.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

import kstreams as ks

HOUR = timedelta(hours=1)


class Flight(msgspec.Struct, frozen=True):
    """One flight; delays and times in minutes, None where the data have no entry."""

    carrier: str
    flight: int
    tailnum: str | None
    origin: str
    dest: str
    departure: datetime  # as scheduled
    dep_delay: int | None
    arr_delay: int | None
    air_time: int | None
    distance: int  # miles


class Airline(msgspec.Struct, frozen=True):
    carrier: str
    name: str


class Weather(msgspec.Struct, frozen=True):
    """One report of an airport's weather; wind speed in miles per hour."""

    origin: str
    wind_speed: float | None


class Departure(msgspec.Struct, frozen=True):
    carrier: str
    flight: int
    airline: str
    departure: datetime
    dep_delay: int


class Delays(msgspec.Struct, frozen=True):
    flights: int
    mean_delay: float
    max_delay: int


class HourlyDelays(msgspec.Struct, frozen=True):
    window_start: datetime
    origin: str
    flights: int
    mean_delay: float
    max_delay: int


class AirlineDelays(msgspec.Struct, frozen=True):
    airline: str
    flights: int
    mean_delay: float


class WindyDeparture(msgspec.Struct, frozen=True):
    carrier: str
    flight: int
    airline: str
    departure: datetime
    dep_delay: int
    wind_speed: float


def with_airline(flight: Flight, airline: Airline) -> Departure:
    return Departure(flight.carrier, flight.flight, airline.name, flight.departure, flight.dep_delay or 0)


def by_hour(origin: ks.Windowed[str], delays: Delays) -> tuple[str, HourlyDelays]:
    start = datetime.fromtimestamp(origin.window.start_ms / 1000, UTC)
    return origin.key, HourlyDelays(start, origin.key, delays.flights, delays.mean_delay, delays.max_delay)


def by_airline(airline: str, delays: Delays) -> AirlineDelays:
    return AirlineDelays(airline, delays.flights, delays.mean_delay)


def in_wind(flight: Departure, weather: Weather) -> WindyDeparture:
    return WindyDeparture(
        flight.carrier, flight.flight, flight.airline, flight.departure, flight.dep_delay, weather.wind_speed or 0.0
    )


builder = ks.StreamsBuilder()
airlines = builder.global_table("airlines", key=str, value=Airline)
weather = builder.stream("weather", key=str, value=Weather)
departed = builder.stream("flights", key=str, value=Flight).filter(~ks.col("dep_delay").is_null())
by_name = departed.join(airlines, with_airline, key_selector=lambda origin, flight: flight.carrier)
delays = {"flights": ks.len(), "mean_delay": ks.col("dep_delay").mean(), "max_delay": ks.col("dep_delay").max()}

(
    departed.group_by_key()
    .windowed_by(ks.TimeWindows(size=HOUR, grace=timedelta(minutes=10)))
    .emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)
    .aggregate(**delays, value=Delays, materialized=ks.Materialized("delays-by-hour", queryable=True))
    .to_stream()
    .map(by_hour)
    .to("delays-by-hour")
)
(
    by_name.group_by(lambda origin, flight: flight.airline, key=str)
    .aggregate(**delays, value=Delays, materialized=ks.Materialized("delays-by-airline", queryable=True))
    .map_values(by_airline, with_key=True)
    .to_stream()
    .to("delays-by-airline")
)
(
    by_name.filter(ks.col("dep_delay") > 60)
    .join(
        weather.filter(ks.col("wind_speed") > 20),
        in_wind,
        windows=ks.JoinWindows(before=HOUR, after=timedelta(0)),
    )
    .to("delayed-in-wind")
)

topology = builder
config = {"application.id": "flights", "processing.guarantee": "exactly_once_v2"}
