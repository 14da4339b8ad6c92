"""Small windowed applications on the test driver: rows (key, value, time) in, rows (key@start/end, value, time) out."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

import kstreams as ks
from kstreams.testing import TopologyTestDriver
from tests.dsl.driven import UNCACHED, run

few = settings(max_examples=40, deadline=None)  # each example runs an application or two
ON_CLOSE = ks.EmitStrategy.ON_WINDOW_CLOSE
ON_UPDATE = ks.EmitStrategy.ON_WINDOW_UPDATE


def shown(windowed: ks.Windowed[str], value: Any) -> str:
    return f"{windowed.key}@{windowed.window.start_ms}/{windowed.window.end_ms}"


def written(table: ks.KTable[Any, Any], key=shown) -> None:
    table.to_stream(key, key=str).to("out")


def windowed(windows: Any, emit=ON_UPDATE, builder: ks.StreamsBuilder | None = None) -> Any:
    """Topic "in", grouped by key and cut into windows; and its builder."""
    builder = builder or ks.StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    return builder, grouped.windowed_by(windows).emit_strategy(emit)


def counts(windows: Any, rows: Any, emit=ON_UPDATE, config: Any = UNCACHED) -> list[tuple[str, int, int]]:
    """What a count over windows puts out."""
    builder, stream = windowed(windows, emit)
    written(stream.count("store"))
    return run(builder, rows, config, value=int)


def latest(updates: list[tuple[str, Any, int]]) -> dict[str, Any]:
    """The table that updates make up."""
    table = {key: value for key, value, _ in updates}
    return {key: value for key, value in table.items() if value is not None}


def records_of(builder: ks.StreamsBuilder, records: list[ks.Record[Any, Any]], config: Any = UNCACHED, **types: Any):
    """All that records put out, headers included."""
    with TopologyTestDriver(builder.build(), {"application.id": "app", **config}) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for record in records:
            topic.pipe_record(record)
        return driver.create_output_topic("out", **{"key": str, "value": str, **types}).read_records()
