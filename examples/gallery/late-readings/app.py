"""Readings of sensors that come late: the mean of each minute, final after 30 seconds; what is later is put aside."""

from datetime import timedelta

import msgspec

import kstreams as ks


class Reading(msgspec.Struct, frozen=True):
    celsius: float


class Minute(msgspec.Struct, frozen=True):
    readings: int
    lowest: float
    highest: float


config = {
    "application.id": "late-readings",
    "errors.dead.letter.queue.topic.name": "too-late",
    "errors.dead.letter.queue.dropped.records": True,
}
topology = ks.StreamsBuilder()

readings = topology.stream("readings", key=str, value=Reading)
minutes = (
    readings.group_by_key()
    .windowed_by(ks.TimeWindows(size=timedelta(minutes=1), grace=timedelta(seconds=30)))
    .emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)
    .aggregate(readings=ks.len(), lowest=ks.col("celsius").min(), highest=ks.col("celsius").max(), value=Minute)
)
minutes.to_stream(lambda sensor, _: f"{sensor.key}@{sensor.window.start_ms}", key=str).to("minutes")
