"""Members of groups in the tasks of Spark: steps of any size give the results of one run."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import kstreams as ks
from tests.spark.running import Row
from tests.spark.stepped import Stepped


def topology() -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    numbers = builder.stream("in", key=str, value=int).group_by_key()
    fields = {"values": ks.value.collect(), "median": ks.value.median(), "different": ks.value.n_unique()}
    numbers.aggregate(**fields).to_stream().map_values(str, value=str).to("all")
    windows = numbers.windowed_by(ks.TimeWindows(size=100, grace=50))
    closed = windows.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).aggregate(**fields)
    closed.to_stream(lambda windowed, _: windowed.key, key=str).map_values(str, value=str).to("closed")
    rows = builder.table("rows", key=str, value=int).group_by(lambda _, value: ("all", value), key=str, value=int)
    rows.aggregate(**fields).to_stream().map_values(str, value=str).to("grouped")
    return builder


def test_steps_of_any_size_give_the_results_of_one_run(tmp_path: Path) -> None:
    rng = random.Random(3)
    records = [
        Row(
            rng.choice(["in", "rows"]), f"k{rng.randrange(3)}", rng.randrange(6), max(0, 9 * number - rng.randrange(60))
        )
        for number in range(120)
    ]
    types = {"in": (str, int), "rows": (str, int), "all": (str, str), "closed": (str, str), "grouped": (str, str)}
    app = Stepped(topology(), types, ("in", "rows"), tmp_path)
    out: list[Any] = []
    start = 0
    while start < len(records):
        end = min(len(records), start + rng.choice([1, 3, 20, 40]))
        out += app.step(records[start:end], twice=rng.random() < 0.3, forget=rng.random() < 0.3)
        start = end
    outputs = ("all", "closed", "grouped")
    assert Counter(out) == Counter(app.driver_outputs(records, outputs))
    assert {topic for topic, *_ in out} == set(outputs)
