"""Fraud: a card that pays in three countries within ten minutes is reported once an hour."""

from datetime import timedelta

import msgspec

import kstreams as ks


class Payment(msgspec.Struct, frozen=True):
    card: str
    country: str
    cents: int


class Suspicion(msgspec.Struct, frozen=True):
    countries: int
    payments: int
    cents: int


config = {"application.id": "fraud"}
topology = ks.StreamsBuilder()

payments = topology.stream("payments", key=str, value=Payment)
ten_minutes = ks.SlidingWindows(difference=timedelta(minutes=10), grace=timedelta(minutes=1))
activity = (
    payments.group_by_key()
    .windowed_by(ten_minutes)
    .aggregate(countries=ks.col("country").n_unique(), payments=ks.len(), cents=ks.col("cents").sum(), value=Suspicion)
)
(
    activity.filter(ks.col("countries") >= 3)
    .to_stream(lambda card, _: card.key, key=str)
    .filter(lambda card, suspicion: suspicion is not None)
    .deduplicate(within=timedelta(hours=1))
    .to("suspicions")
)
