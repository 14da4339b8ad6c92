"""The application of `test_old_event_times`: whatever keeps state by event time, in one topology."""

from __future__ import annotations

import kstreams as ks

DAY_MS = 86_400_000


def topology() -> ks.StreamsBuilder:
    """Trades with the price of their time, and marks that are counted, joined and held back."""
    builder = ks.StreamsBuilder()
    prices = builder.table(
        "prices", key=str, value=str, materialized=ks.Materialized("prices", history_retention=DAY_MS)
    )
    trades = builder.stream("trades", key=str, value=str)
    trades.left_join(prices, lambda trade, price: f"{price}", value=str).to("priced", key=str, value=str)

    marks = builder.stream("marks", key=str, value=str)
    minutes = marks.group_by_key().windowed_by(ks.TimeWindows(size=60_000, grace=DAY_MS))
    counts = minutes.count(materialized="minutes").to_stream()
    counts.map(lambda key, count: (f"{key.key}@{key.window.start_ms}", count), key=str, value=int).to("counts")
    sessions = marks.group_by_key().windowed_by(ks.SessionWindows(gap=500, grace=DAY_MS)).count(materialized="sessions")
    sessions.to_stream().map(lambda key, count: (key.key, count), key=str, value=int).to("visits")
    held = minutes.count(materialized="held").suppress(ks.Suppressed.until_window_closes())
    held.to_stream().map(lambda key, count: (f"{key.key}@{key.window.start_ms}", count), key=str, value=int).to("final")
    windows = ks.JoinWindows.of(DAY_MS)
    answers = builder.stream("answers", key=str, value=str)
    marks.join(answers, lambda mark, answer: f"{mark}+{answer}", windows=windows, value=str).to("pairs")
    return builder
