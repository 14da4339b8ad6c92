"""Out-of-order events: readings of devices that were offline for a while still count in the minute they belong to.

The event's own time, not its arrival, says which window it falls in. Each late reading changes the count of its window
once more, for as long as the grace lasts; what comes later still is dropped, and counted by the metric of dropped
records: `kstreams run examples/patterns/out_of_order.py --until-end`.
"""

from datetime import datetime, timedelta

import msgspec

import kstreams as ks


class Reading(msgspec.Struct, frozen=True):
    measured: datetime
    celsius: float


class Minute(msgspec.Struct, frozen=True):
    readings: int
    warmest: float


def time_of_measurement(record: ks.Record[str, Reading], partition_time_ms: int) -> int:
    return round(record.value.measured.timestamp() * 1000)


topology = ks.StreamsBuilder()
config = {"application.id": "out-of-order"}

(
    topology.stream("readings", key=str, value=Reading, timestamp_extractor=time_of_measurement)
    .group_by_key()
    .windowed_by(ks.TimeWindows(size=timedelta(minutes=1), grace=timedelta(minutes=10)))
    .aggregate(readings=ks.len(), warmest=ks.col("celsius").max(), value=Minute, materialized="minutes")
    .to_stream(lambda minute, summary: f"{minute.key}@{minute.window.start_ms}", key=str)
    .to("minutes")
)
