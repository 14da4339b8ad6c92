"""Local state: the lowest and the mean price of each share, day by day.

All trades of one share come to one task, which keeps what it needs of them in its own store:
`kstreams run examples/patterns/price_range.py --until-end`.
"""

from datetime import timedelta

import msgspec

import kstreams as ks


class Trade(msgspec.Struct, frozen=True):
    share: str
    price: float
    volume: int


class PriceRange(msgspec.Struct, frozen=True):
    trades: int
    lowest: float
    mean: float


topology = ks.StreamsBuilder()
config = {"application.id": "price-range"}

(
    topology.stream("trades", key=str, value=Trade)
    .group_by_key()
    .windowed_by(ks.TimeWindows(size=timedelta(days=1), grace=timedelta(hours=1)))
    .aggregate(
        trades=ks.len(),
        lowest=ks.col("price").min(),
        mean=ks.col("price").mean(),
        value=PriceRange,
        materialized="price-ranges",
    )
    .to_stream(lambda day, prices: f"{day.key}@{day.window.start_ms}", key=str)
    .to("price-ranges")
)
