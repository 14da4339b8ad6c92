"""Applications between the tables of a database."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import kstreams as ks
from kstreams.connectors.columns import ValueColumns
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.serdes import serde_of
from tests.connectors.sql.databases import EmptyDatabase, SqliteFile
from tests.native.world import World


class Sale(msgspec.Struct):
    id: int
    item: str
    amount: float
    at: datetime


class Item(msgspec.Struct):
    id: int
    item: str


@pytest.fixture
def shop(tmp_path: Path) -> EmptyDatabase:
    database = SqliteFile(tmp_path)
    database.rows("CREATE TABLE sales (id INTEGER PRIMARY KEY, item TEXT, amount REAL, at TEXT)")
    return database


def sell(shop: EmptyDatabase, *sales: tuple[str, float, str]) -> None:
    for item, amount, minute in sales:
        shop.rows(f"INSERT INTO sales (item, amount, at) VALUES ('{item}', {amount}, '2024-05-06 07:{minute}')")


def sales_of(builder: ks.StreamsBuilder, shop: EmptyDatabase) -> ks.KStream[Any, Sale]:
    source = ks.sources.sql(
        shop.url,
        table="sales",
        value=Sale,
        key="id",
        mode="timestamp+incrementing",
        timestamp_column="at",
        incrementing_column="id",
    )
    return builder.stream(source, name="sales")


def run_to_end(builder: ks.StreamsBuilder, world: World, **settings: object) -> None:
    with ks.KafkaStreams(builder, {**world.settings, **settings}) as streams:
        streams.start(until_end=True)
        streams.wait()


def test_windowed_counts_have_their_window_in_the_key(shop: EmptyDatabase, tmp_path: Path) -> None:
    world = World(tmp_path)
    builder = ks.StreamsBuilder()
    windows = ks.TimeWindows(size=timedelta(minutes=1))
    counts = sales_of(builder, shop).group_by(lambda id, sale: sale.item, key=str).windowed_by(windows).count()
    sink = ks.sinks.sql(shop.url, "counts", mode="upsert", key=["key", "window_start"])
    counts.to_stream().to(sink, name="counts")
    sell(shop, ("tea", 1.0, "00:01"), ("tea", 2.0, "00:59"), ("rum", 5.0, "01:00"))
    run_to_end(builder, world)
    sell(shop, ("tea", 1.0, "01:30"), ("rum", 5.0, "01:31"))
    run_to_end(builder, world)
    assert shop.rows('SELECT "key", window_start, value FROM counts ORDER BY 1, 2') == [
        ("rum", "2024-05-06 07:01:00.000000", 2),
        ("tea", "2024-05-06 07:00:00.000000", 2),
        ("tea", "2024-05-06 07:01:00.000000", 1),
    ]


def test_a_row_that_leaves_a_table_is_deleted(shop: EmptyDatabase, tmp_path: Path) -> None:
    world = World(tmp_path)
    builder = ks.StreamsBuilder()
    cheap = sales_of(builder, shop).to_table().filter(lambda id, sale: sale.amount < 3)
    cheap.to_stream().to(ks.sinks.sql(shop.url, "cheap", mode="upsert", key="id"), name="cheap")
    sell(shop, ("tea", 1.0, "00:01"), ("rum", 2.0, "00:02"))
    run_to_end(builder, world)
    assert shop.rows("SELECT id, item FROM cheap ORDER BY id") == [(1, "tea"), (2, "rum")]
    shop.rows("UPDATE sales SET amount = 9, at = '2024-05-06 07:05:00' WHERE id = 2")
    run_to_end(builder, world)
    assert shop.rows("SELECT id, item FROM cheap") == [(1, "tea")]


def test_a_refused_row_is_a_dead_letter(shop: EmptyDatabase, tmp_path: Path) -> None:
    world = World(tmp_path)
    shop.rows("CREATE TABLE copies (id INTEGER PRIMARY KEY, item TEXT, amount REAL CHECK (amount < 3), at TEXT)")
    builder = ks.StreamsBuilder()
    sales_of(builder, shop).to(ks.sinks.sql(shop.url, "copies", mode="upsert", key="id"), name="copies")
    world.create("letters", 1)
    sell(shop, ("tea", 1.0, "00:01"), ("rum", 5.0, "00:02"), ("ale", 2.0, "00:03"))
    run_to_end(builder, world, **{"errors.dead.letter.queue.topic.name": "letters"})
    assert shop.rows("SELECT item FROM copies ORDER BY id") == [("tea",), ("ale",)]
    [letter] = [row for rows in world.partitions("letters", int, Sale) for row in rows]
    assert letter.value.item == "rum"


def test_partitions_may_change_the_same_rows(postgres: EmptyDatabase, tmp_path: Path) -> None:
    """In particular so many that they do not wait for a commit: the writers of one process share a thread."""
    world = World(tmp_path)
    world.create("sales", partitions=2)
    count = 60_000
    times = pa.array(np.zeros(count, np.int64))
    values = ValueColumns(serde_of(Item)).encode(
        pa.StructArray.from_arrays([np.arange(count), pa.array(["tea"] * count)], ["id", "item"])
    )
    with world.log() as log, log.producer() as producer:
        for partition in range(2):
            source = TopicPartition("sales", partition)
            producer.send_batch(Batch(source, np.arange(count), pa.nulls(count, pa.binary()), values, times))
    builder = ks.StreamsBuilder()
    sink = ks.sinks.postgres(postgres.url, "items", upsert="id", pk_mode="record_value")
    builder.stream("sales", key=bytes, value=Item).to(sink, name="items")
    run_to_end(builder, world)
    assert postgres.rows("SELECT count(*), max(id) FROM items") == [(count, count - 1)]
