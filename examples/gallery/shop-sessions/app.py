"""Sessions of a shop: what a visitor saw and spent until half an hour without a click, once the session is over."""

from datetime import timedelta

import msgspec

import kstreams as ks


class Click(msgspec.Struct, frozen=True):
    page: str
    cents: int  # paid with this click


class Visit(msgspec.Struct, frozen=True):
    clicks: int
    entry: str
    exit: str
    cents: int


class Session(msgspec.Struct, frozen=True):
    begin_ms: int
    end_ms: int
    visit: Visit


def with_times(visitor: ks.Windowed[str], visit: Visit) -> tuple[str, Session]:
    return visitor.key, Session(visitor.window.start_ms, visitor.window.end_ms, visit)


config = {"application.id": "shop-sessions"}
topology = ks.StreamsBuilder()

clicks = topology.stream("clicks", key=str, value=Click)
visits = (
    clicks.group_by_key()
    .windowed_by(ks.SessionWindows(gap=timedelta(minutes=30), grace=timedelta(minutes=5)))
    .emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)
    .aggregate(
        clicks=ks.len(),
        entry=ks.col("page").first(),
        exit=ks.col("page").last(),
        cents=ks.col("cents").sum(),
        value=Visit,
    )
)
visits.to_stream().map(with_times).to("sessions")
