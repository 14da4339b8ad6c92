"""A kind of windows of an application's own: calendar months in a time zone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import kstreams as ks
from kstreams.dsl.window_kinds import WindowKind, register_window_kind
from kstreams.errors import TopologyError
from kstreams.kernel.durations import Duration, to_ms
from kstreams.processor.context.operator_context import ClosureOperator
from kstreams.processor.operators.aggregation.aggregator import Aggregator, RowUpdater
from kstreams.processor.operators.aggregation.emission import MaterializedRows, emit_nothing, emitter
from kstreams.processor.operators.aggregation.live_aggregation import LiveWindows
from kstreams.processor.operators.windowed.rows import WindowStoreView
from kstreams.record import Change
from kstreams.serdes import Serde, WindowedSerde, serde_of
from kstreams.state import store_kinds
from kstreams.testing import TopologyTestDriver
from kstreams.windows import Windows
from tests.extension.two_runs import Updates, natively, on_driver, on_spark
from tests.spark.running import Row

LONGEST_MS = 32 * 86_400_000  # 31 days, and an hour where a clock is put back


@dataclass(frozen=True, init=False)
class CalendarMonths(Windows):
    """Months as the calendar of a time zone has them."""

    zone: str
    grace_ms: int

    def __init__(self, zone: str, grace: Duration = 0) -> None:
        object.__setattr__(self, "zone", zone)
        object.__setattr__(self, "grace_ms", to_ms(grace))

    def window_at(self, timestamp_ms: int) -> ks.Window:
        local = datetime.fromtimestamp(timestamp_ms / 1000, ZoneInfo(self.zone))
        first = datetime(local.year, local.month, 1, tzinfo=local.tzinfo)
        after = datetime(local.year + local.month // 12, local.month % 12 + 1, 1, tzinfo=local.tzinfo)
        return ks.Window(_ms(first), _ms(after))

    @property
    def retention_ms(self) -> int:
        return LONGEST_MS + self.grace_ms

    @property
    def closes_after_ms(self) -> int:
        return self.grace_ms


def _ms(time: datetime) -> int:
    return int(time.timestamp()) * 1000


class MonthSerde(WindowedSerde):
    """The key, then the start of the month; its end follows from the calendar."""

    def __init__(self, inner: Serde[Any], months: CalendarMonths) -> None:
        super().__init__(inner)
        self.months = months

    def serialize(self, value: ks.Windowed[Any]) -> bytes:
        return self.inner.serialize(value.key) + value.window.start_ms.to_bytes(8, "big")

    def deserialize(self, data: bytes) -> ks.Windowed[Any]:
        start_ms = int.from_bytes(data[-8:], "big")
        return ks.Windowed(self.inner.deserialize(data[:-8]), self.months.window_at(start_ms))


@dataclass(frozen=True)
class MonthlyOperator(ClosureOperator):
    """One aggregate per key and month, emitted at every update or once the month is over; late records are dropped."""

    aggregator: Aggregator
    table_rows: MaterializedRows
    months: CalendarMonths
    emits_on_close: bool

    def bind(self, context: Any, forward: Callable[..., None]) -> Callable[..., None]:
        live = LiveWindows(context, self.table_rows.store, lambda start_ms: self._emit(context, forward))
        updater, wrap = self.aggregator.row_updater(context, self.table_rows)
        process = self._process(context, live, updater)
        if not self.emits_on_close:
            return wrap(process)
        self._emit_at_close(context, live, forward)
        return wrap(live.closing_first(process))

    def _emit(self, context: Any, forward: Callable[..., None]) -> Callable[..., None]:
        if self.emits_on_close:
            return emit_nothing
        return emitter(context, forward, self.table_rows, result=self.aggregator.result)

    def _process(self, context: Any, live: LiveWindows, updater: RowUpdater) -> Callable[..., None]:
        store, months, emit = live.store, self.months, live.emit_of(0)

        def process(key: Any, value: Any, timestamp: int) -> None:
            live.stream_time_ms, month = max(live.stream_time_ms, timestamp), months.window_at(timestamp)
            if key is None or month.end_ms + months.grace_ms <= live.stream_time_ms:
                context.dropped("null key, or late: its month is over")
                return
            update = updater.bind(
                lambda key: store.get(key, month.start_ms),
                lambda key, row: store.put(key, row, month.start_ms),
                lambda key, *update: emit(ks.Windowed(key, month), *update),
            )
            update(key, value, timestamp)

        return process

    def _emit_at_close(self, context: Any, live: LiveWindows, forward: Callable[..., None]) -> None:
        months = self.months

        def close() -> int:
            running = months.window_at(max(0, live.stream_time_ms - months.grace_ms))
            if running.start_ms > live.closed_until_ms:
                for (key, window), (value, timestamp) in live.store.started_between(
                    max(0, live.closed_until_ms), running.start_ms - 1
                ):
                    forward(ks.Windowed(key, months.window_at(window.start_ms)), Change(value), timestamp)
                live.closed_until_ms = running.start_ms
            return running.end_ms + months.grace_ms

        live.closes_by(context, close, lambda stream_time_ms: months.window_at(stream_time_ms).end_ms + months.grace_ms)


MONTHS = WindowKind(
    windows=CalendarMonths,
    key_serde=MonthSerde,
    store=store_kinds.TIMESTAMPED_WINDOW,
    operator=MonthlyOperator,
    view=WindowStoreView,
    store_settings=lambda months, retention_ms, on_close: {
        "retention_ms": retention_ms,
        "window_size_ms": LONGEST_MS,
        "time_ordered": on_close,
    },
)
register_window_kind(MONTHS)

ON_UPDATE, ON_CLOSE = ks.EmitStrategy.ON_WINDOW_UPDATE, ks.EmitStrategy.ON_WINDOW_CLOSE
ZONE = "America/New_York"
TYPES = {"in": (str, int), "out": (str, int)}
DAYS = [
    (1, 31, 23), (2, 1, 4), (2, 1, 5), (2, 29, 12), (3, 1, 6), (2, 28, 9), (3, 31, 2),  # 4 h UTC is the day before
    (4, 1, 3), (3, 31, 20), (4, 1, 5), (4, 30, 8), (3, 1, 0), (5, 1, 3), (5, 1, 4), (5, 2, 0),
]  # fmt: skip
TIMES = [_ms(datetime(2024, month, day, hour, tzinfo=UTC)) for month, day, hour in DAYS]
ROWS = [Row("in", "ab"[i % 5 == 0], i + 1, time, 0) for i, time in enumerate(TIMES)]


def topology(windows: Any = CalendarMonths(ZONE), emit: Any = ON_UPDATE) -> ks.Topology:
    builder = ks.StreamsBuilder()
    months = builder.stream("in", key=str, value=int).group_by_key().windowed_by(windows).emit_strategy(emit)
    totals = months.reduce(lambda total, value: total + value, materialized="totals")
    named = totals.to_stream(lambda key, total: f"{key.key} {key.window.start_ms} {key.window.end_ms}", key=str)
    named.to("out", value=int)
    return builder.build()


def expected() -> Updates:
    """The same in plain Python: month by month by the calendar of New York, what is late left out."""
    zone, updates, stream_time = ZoneInfo(ZONE), Updates(), 0
    for row in ROWS:
        local, stream_time = datetime.fromtimestamp(row.timestamp / 1000, zone), max(stream_time, row.timestamp)
        starts = [datetime(2024, month, 1, tzinfo=zone) for month in (local.month, local.month + 1)]
        start_ms, end_ms = (int(start.timestamp() * 1000) for start in starts)
        if end_ms > stream_time:
            seen = updates.setdefault(f"{row.key} {start_ms} {end_ms}", [])
            total, latest = seen[-1] if seen else (0, 0)
            seen.append((total + row.value, max(latest, row.timestamp)))
    return updates


def test_the_rows_fall_into_months_of_several_lengths() -> None:
    ends = {tuple(map(int, key.split()[1:])) for key in expected()}
    assert {(end - start) // 3_600_000 for start, end in ends} == {29 * 24, 30 * 24, 31 * 24, 31 * 24 - 1}
    assert sum(map(len, expected().values())) < len(ROWS)


def test_on_the_test_driver() -> None:
    assert on_driver(topology(), TYPES, ROWS) == expected()


def test_natively_with_restarts(tmp_path: Path) -> None:
    assert natively(tmp_path, topology(), TYPES, ROWS) == expected()


@pytest.mark.spark
def test_on_spark(spark: Any, tmp_path: Path) -> None:
    assert on_spark(spark, tmp_path, topology(), TYPES, ROWS) == expected()


def test_its_keys_pass_through_topics_and_its_rows_are_found_by_tests() -> None:
    builder = ks.StreamsBuilder()
    months = builder.stream("in", key=str, value=int).group_by_key().windowed_by(CalendarMonths(ZONE))
    months.count("totals").to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    driver.create_input_topic("in", key=str, value=int).pipe_input("a", 1, timestamp=TIMES[2])
    serde = MonthSerde(serde_of(str), CalendarMonths(ZONE))
    month = CalendarMonths(ZONE).window_at(TIMES[2])
    (record,) = driver.create_output_topic("out", key=serde, value=int).read_records()
    assert (record.key, record.value) == (ks.Windowed("a", month), 1)
    assert driver.get_window_store("totals").get("a", month.start_ms) == 1


def at_close() -> Updates:
    """Of each month, the last update: also of those that a jump of years closes."""
    return Updates({key: updates[-1:] for key, updates in expected().items()})


LEAPING = [*ROWS, Row("in", "a", 1, _ms(datetime(2031, 7, 4, tzinfo=UTC)), 0)]


def leapt() -> Updates:
    final, (start, end) = at_close(), (datetime(2031, month, 1, tzinfo=ZoneInfo(ZONE)) for month in (7, 8))
    return Updates({**final, f"a {_ms(start)} {_ms(end)}": [(1, LEAPING[-1].timestamp)]})


def test_months_that_are_over_are_emitted_once_on_the_test_driver() -> None:
    assert on_driver(topology(emit=ON_CLOSE), TYPES, LEAPING) == at_close()  # its input does not end


def test_months_that_are_over_are_emitted_once_natively_with_restarts(tmp_path: Path) -> None:
    assert natively(tmp_path, topology(emit=ON_CLOSE), TYPES, LEAPING, stays_open=True) == leapt()


@pytest.mark.spark
def test_months_that_are_over_are_emitted_once_on_spark(spark: Any, tmp_path: Path) -> None:
    assert on_spark(spark, tmp_path, topology(emit=ON_CLOSE), TYPES, LEAPING, stays_open=True) == leapt()


def test_it_is_registered_once() -> None:
    with pytest.raises(TopologyError, match="CalendarMonths are registered already"):
        register_window_kind(MONTHS)


def test_windows_of_an_unknown_kind_are_refused() -> None:
    stream = ks.StreamsBuilder().stream("in", key=str, value=int).group_by_key()
    with pytest.raises(TopologyError, match=r"takes .*TimeWindows, .*UnlimitedWindows.*, not 'weekly'"):
        stream.windowed_by("weekly")  # type: ignore[call-overload]
