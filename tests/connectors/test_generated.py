"""Generated rows depend on the seed and their number alone."""

from __future__ import annotations

import time
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams.connectors import Source
from kstreams.errors import ConnectorError
from kstreams.testing.connectors import Order, SourceContract, read_all
from tests.connectors.running import copy_in, log_with_topics, topic_rows


class Everything(msgspec.Struct):
    number: int
    amount: float
    name: str
    is_new: bool
    at: datetime
    day: date
    note: str | None
    tags: list[str]


def everything(**settings: Any) -> Source:
    tags = {"tags": [["a"], ["a", "b"], []]}
    return ks.sources.generate(
        Everything, **{"rate": 0, "rows": 9_000, "seed": 5, "fields": tags, "start": 0, **settings}
    )


def rows_of(source: Source, split: str = "0", position: Any = None) -> list[Any]:
    return [row for batch in read_all(source, split, position) for row in batch.values.to_pylist()]


class TestGenerated(SourceContract):
    def source(self, folder: Path) -> Source:
        return everything(splits=2)

    def rows(self, folder: Path) -> list[Any]:
        return rows_of(everything(splits=2), "0") + rows_of(everything(splits=2), "1")


def test_a_seed_makes_the_same_rows_each_time_and_another_one_makes_others() -> None:
    assert rows_of(everything()) == rows_of(everything())
    assert rows_of(everything()) != rows_of(everything(seed=6))
    assert len(rows_of(everything())) == 9_000


def test_rows_go_on_in_the_middle_of_a_block_as_they_would_have() -> None:
    all_rows = rows_of(everything())
    for start in (1, 4_095, 4_096, 8_999):
        assert rows_of(everything(), position={"row": start, "start": 0}) == all_rows[start:]


def test_splits_share_the_rows() -> None:
    source = everything(rows=10, splits=3)
    counts = [len(rows_of(source, split)) for split in source.splits()]
    assert sorted(counts) == [3, 3, 4]


def test_values_are_those_that_were_named() -> None:
    class Trade(msgspec.Struct):
        symbol: str
        price: float
        size: int

    fields = {"symbol": ["A", "B"], "price": (1.0, 2.0), "size": range(10, 40, 10)}
    rows = rows_of(ks.sources.generate(Trade, rate=0, rows=1_000, fields=fields))
    assert {row["symbol"] for row in rows} == {"A", "B"}
    assert all(1.0 <= row["price"] <= 2.0 for row in rows)
    assert {row["size"] for row in rows} == {10, 20, 30}


def test_rows_come_at_their_rate_and_so_do_their_times() -> None:
    source = ks.sources.generate(Order, rate=1_000, start=datetime(2026, 1, 1, tzinfo=UTC))
    times = list[int]()
    with closing(source.open("0", None)) as reader:
        begin = time.monotonic()
        while len(times) < 300:
            batch = reader.read()
            if batch is not None:
                assert batch.timestamps is not None
                times += batch.timestamps.to_pylist()
        assert time.monotonic() - begin >= 0.29
    assert times == [1_767_225_600_000 + number for number in range(len(times))]


def test_rows_are_written_once_across_restarts(tmp_path: Path) -> None:
    with log_with_topics(tmp_path) as log:
        for rows in (2_000, 5_000):
            copy_in(log, ks.sources.generate(Order, key="id", rate=0, rows=rows, seed=1))
            assert len(topic_rows(log)) == rows


def test_what_cannot_be_generated_is_refused_at_once() -> None:
    with pytest.raises(ConnectorError, match=r"'tags' is list\[str\], whose values must be named: fields={'tags'"):
        ks.sources.generate(Everything)
    with pytest.raises(ConnectorError, match="has no fields to generate"):
        ks.sources.generate(dict)
    with pytest.raises(ConnectorError, match="Order has no field 'symbol'; it has id, name, amount"):
        ks.sources.generate(Order, key="symbol")
