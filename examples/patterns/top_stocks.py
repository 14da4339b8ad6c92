"""Multi-phase: the ten shares that gained most on each day.

First every share is summed up where its trades are, then the sums of a day meet in one place; a topic lies between the
two phases: `kstreams run examples/patterns/top_stocks.py --until-end`.
"""

from datetime import timedelta

import msgspec

import kstreams as ks

DAY = timedelta(days=1)
SHARES = 10


class Trade(msgspec.Struct, frozen=True):
    share: str
    price: float
    volume: int


class Day(msgspec.Struct, frozen=True):
    """A share's day: what it cost first and last."""

    share: str
    opening: float
    closing: float

    @property
    def gain(self) -> float:
        """In percent of the opening price, to two digits."""
        return round(100 * (self.closing - self.opening) / self.opening, 2)


class Gain(msgspec.Struct, frozen=True):
    share: str
    percent: float


def follow(share: str, trade: Trade, day: Day | None) -> Day:
    return Day(share, trade.price if day is None else day.opening, trade.price)


def without(date: str, day: Day, days: dict[str, Day]) -> dict[str, Day]:
    return {share: other for share, other in days.items() if share != day.share}


def best(days: dict[str, Day]) -> list[Gain]:
    ranked = sorted(days.values(), key=lambda day: (-day.gain, day.share))
    return [Gain(day.share, day.gain) for day in ranked[:SHARES]]


topology = ks.StreamsBuilder()
config = {"application.id": "top-stocks"}

days = (
    topology.stream("trades", key=str, value=Trade)
    .group_by_key()
    .windowed_by(ks.TimeWindows(size=DAY, grace=timedelta(hours=1)))
    .aggregate(lambda: None, follow, value=Day, materialized="days")
)
(
    days.group_by(lambda share, day: (str(share.window.start_ms), day), key=str, value=Day)
    .aggregate(
        dict,
        lambda date, day, days: days | {day.share: day},
        without,
        value=dict[str, Day],
        materialized="days-by-date",
    )
    .to_stream()
    .map_values(best, value=list[Gain])
    .to("top-stocks")
)
