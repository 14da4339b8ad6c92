"""Trades as Protobuf: JSON becomes messages of a .proto file, and the totals of each share are messages of a class.

The registry of schemas lies in the embedded log, so no server is needed:
`kstreams run examples/protobuf/trades.py --until-end`.
"""

import enum
from datetime import UTC, datetime
from pathlib import Path

import msgspec

import kstreams as ks


class Size(enum.Enum):
    SMALL = 0
    LARGE = 1


class Trade(msgspec.Struct, frozen=True):
    share: str
    price: float
    volume: int
    size: Size = Size.SMALL
    at: datetime | None = None


class Total(msgspec.Struct, frozen=True):
    trades: int = 0
    volume: int = 0
    large: int = 0
    last: datetime | None = None


config = {"application.id": "protobuf-trades", "schema.registry.url": "local:"}
topology = ks.StreamsBuilder()

messages = ks.Protobuf(Path(__file__).with_name("trade.proto"), type=Trade)


class Complete(ks.FixedKeyProcessor[str, Trade, Trade]):
    """Gives trades their size, and the time of their record."""

    def init(self, context: ks.FixedKeyProcessorContext[str, Trade]) -> None:
        self.context = context

    def process(self, record: ks.FixedKeyRecord[str, Trade]) -> None:
        trade = record.value
        size = Size.LARGE if trade.volume >= 400 else Size.SMALL
        at = datetime.fromtimestamp(record.timestamp / 1000, UTC)
        self.context.forward(record.with_value(msgspec.structs.replace(trade, size=size, at=at)))


def add(share: str, trade: Trade, total: Total) -> Total:
    return Total(total.trades + 1, total.volume + trade.volume, total.large + (trade.size is Size.LARGE), trade.at)


trades = topology.stream("trades", key=str, value=Trade).process_values(Complete, value=messages)
trades.to("protobuf-trades")
totals = trades.group_by_key().aggregate(Total, add, value=ks.Protobuf(Total), materialized="totals")
totals.to_stream().to("protobuf-totals")
