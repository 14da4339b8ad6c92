"""Deduplication: a producer that repeats itself after time-outs; each event counts once."""

from datetime import timedelta

import msgspec

import kstreams as ks


class Delivery(msgspec.Struct, frozen=True):
    id: str
    parcels: int


config = {"application.id": "deduplication"}
topology = ks.StreamsBuilder()

deliveries = topology.stream("deliveries", key=str, value=Delivery)
once = deliveries.deduplicate(within=timedelta(hours=1), by=ks.col("id"))
once.to("deliveries-once")
once.group_by_key().aggregate(parcels=ks.col("parcels").sum()).to_stream().to("parcels")
