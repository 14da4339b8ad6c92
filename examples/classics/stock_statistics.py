"""Stock statistics: over the last five seconds, every second anew, how often a share was asked for and at what price.

`kstreams run examples/classics/stock_statistics.py --until-end`.
"""

from datetime import timedelta

import msgspec

import kstreams as ks


class Trade(msgspec.Struct, frozen=True):
    share: str
    price: float
    volume: int


class Statistics(msgspec.Struct, frozen=True):
    trades: int
    lowest: float
    mean: float


topology = ks.StreamsBuilder()
config = {"application.id": "stock-statistics"}

windows = ks.TimeWindows(size=timedelta(seconds=5), advance=timedelta(seconds=1), grace=timedelta(seconds=2))
(
    topology.stream("trades", key=str, value=Trade)
    .group_by_key()
    .windowed_by(windows)
    .aggregate(
        trades=ks.len(),
        lowest=ks.col("price").min(),
        mean=ks.col("price").mean(),
        value=Statistics,
        materialized="statistics",
    )
    .to_stream(lambda window, statistics: f"{window.key}@{window.window.start_ms}", key=str)
    .to("stock-statistics")
)
