"""Rows that do not fit the types of their source become dead letters; all others become records, each exactly once."""

from __future__ import annotations

import random
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyarrow import parquet
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

import kstreams as ks
from kstreams.connectors import Source
from kstreams.errors import ConnectorError
from tests.connectors.http.serving import serving
from tests.connectors.running import topic_rows
from tests.log.embedded.files import kill, start
from tests.native.world import World, until

CONFIG = {"errors.dead.letter.queue.topic.name": "letters"}


class Trade(msgspec.Struct):
    id: int
    price: float


def csv(folder: Path) -> Source:
    (folder / "a.csv").write_text('id,price\n1,1.5\ntwo,2.5\n3,3.5\n4,"4\n.5"\n5,5.5\n')
    return ks.sources.csv(folder / "a.csv", Trade, key="id")


def json_lines(folder: Path) -> Source:
    (folder / "a.jsonl").write_text(
        '{"id":1,"price":1.5}\n{"id":2\n{"id":3,"price":3.5}\n{"id":4}\n{"id":5,"price":5}\n'
    )
    return ks.sources.json_lines(folder / "a.jsonl", Trade, key="id")


def parquet_file(folder: Path) -> Source:
    table = pa.table({"id": ["1", "two", "3", "4", "5"], "price": ["1.5", "2.5", "3.5", "4,5", "5.5"]})
    parquet.write_table(table, folder / "a.parquet")
    return ks.sources.parquet(folder / "a.parquet", Trade, key="id")


def sqlite_table(folder: Path) -> Source:
    with closing(sqlite3.connect(folder / "shop.db")) as shop, shop:
        shop.execute("CREATE TABLE trades (id INTEGER, price REAL)")
        rows = [(1, 1.5), ("two", 2.5), (3, 3.5), (4, "4,5"), (5, 5.5)]
        shop.executemany("INSERT INTO trades VALUES (?, ?)", rows)
    return ks.sources.sql(f"sqlite:///{folder}/shop.db", table="trades", value=Trade, key="id")


@pytest.mark.parametrize(
    ("make", "contents", "places"),
    [
        (csv, [b"two,2.5", b'4,"4\n.5"'], ['a.csv {"byte":15}', 'a.csv {"byte":29}']),
        (json_lines, [b'{"id":2', b'{"id":4}'], ['a.jsonl {"byte":21}', 'a.jsonl {"byte":50}']),
        (
            parquet_file,
            [b'{"id":"two","price":"2.5"}', b'{"id":"4","price":"4,5"}'],
            ['a.parquet {"row":1}', 'a.parquet {"row":3}'],
        ),
        (
            sqlite_table,
            [b'{"id":"two","price":"2.5"}', b'{"id":"4","price":"4,5"}'],
            ['trades {"rows":5}'] * 2,
        ),
    ],
)
def test_rows_that_do_not_fit_are_dead_letters_with_their_place(
    make: Callable[[Path], Source], contents: list[bytes], places: list[str], tmp_path: Path
) -> None:
    world = World(tmp_path)
    assert sorted(key for key, _ in read(world, make(tmp_path))) == [1, 3, 5]
    letters = letters_of(world)
    assert sorted(value for value, _ in letters) == sorted(contents)
    assert sorted(letter.source_row for _, letter in letters) == places
    assert all(re.fullmatch(r"trades-feed \d VALUE_CONVERTER", letter.place) for _, letter in letters)
    assert all(letter.topic == "app-trades-feed" and letter.message for _, letter in letters)


def test_rows_that_do_not_fit_end_an_application_without_a_dead_letter_topic(tmp_path: Path) -> None:
    message = r"trades-feed cannot take b'two,2.5' of a.csv at {'byte': 15}: .*errors.dead.letter.queue.topic.name"
    with pytest.raises(ConnectorError, match=message):
        read(World(tmp_path), csv(tmp_path), {})


def test_a_file_in_which_no_row_fits(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,price\nx,1\ny,2\n")
    world = World(tmp_path)
    assert read(world, ks.sources.csv(tmp_path / "a.csv", Trade, key="id")) == []
    assert [value for value, _ in letters_of(world)] == [b"x,1", b"y,2"]


def test_text_that_is_no_utf_8(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\ntw\xff\nthree\n")
    world = World(tmp_path)
    assert [value for _, value in read(world, ks.sources.text(tmp_path / "a.txt"))] == ["one", "three"]
    assert [value for value, _ in letters_of(world)] == [b"tw\xff"]


def test_a_value_that_the_topic_cannot_hold(tmp_path: Path) -> None:
    world = World(tmp_path)
    table = pa.table({"id": [1, 2, 3], "price": ["1.5", "high", "3.5"]})
    assert read(world, ks.sources.arrow(table, Trade, key="id")) == [(1, Trade(1, 1.5)), (3, Trade(3, 3.5))]
    assert [(value, letter.source_row) for value, letter in letters_of(world)] == [
        (b'{"id":2,"price":"high"}', "rows 3")
    ]


@pytest.mark.parametrize("value", [Trade, dict])
def test_records_of_a_service(value: Any, tmp_path: Path) -> None:
    async def answer(request: Request) -> Response:
        return PlainTextResponse('{"id":1,"price":1.5}\n{"id":2\n[7]\n{"id":3,"price":3.5}\n')

    world = World(tmp_path)
    with serving(answer) as server:
        records = read(world, ks.sources.http(server.url, value, key="id", format="lines"))
    assert [str(key) for key, _ in records] == ["1", "3"]
    assert [content for content, _ in letters_of(world)] == [b'{"id":2', b"[7]"]


def test_server_sent_events(tmp_path: Path) -> None:
    async def answer(request: Request) -> Response:
        if "last-event-id" in request.headers:
            return JSONResponse({}, 503)
        text = "".join(
            f"id: {n}\ndata: {data}\n\n" for n, data in enumerate(['{"id":1,"price":1}', "?", '{"id":3,"price":3}'])
        )
        return StreamingResponse(iter([text]), media_type="text/event-stream")

    world = World(tmp_path)
    with serving(answer) as server:
        world.create("letters")
        builder = ks.StreamsBuilder()
        builder.stream(ks.sources.sse(server.url, Trade, key="id"), name="trades").to("trades")
        world.create("trades")
        with ks.KafkaStreams(builder, {**world.settings, **CONFIG}) as streams:
            streams.start()
            until(lambda: sum(map(len, world.partitions("trades", int, Trade))) == 2)
    ((content, letter),) = letters_of(world)
    assert (content, letter.source_row) == (b"?", f'{server.url}/ "2"')


APPLICATION = """
import sys
from pathlib import Path
import msgspec
import kstreams as ks
class Trade(msgspec.Struct):
    id: int
    price: float
folder = Path(sys.argv[1])
builder = ks.StreamsBuilder()
builder.stream(ks.sources.csv(folder / "in/*.csv", Trade, key="id"), name="trades").to("trades")
settings = {
    "application.id": "app", "log.dir": folder / "log", "state.dir": folder / "state", "commit.interval.ms": 50,
    "processing.guarantee": "exactly_once_v2", "errors.dead.letter.queue.topic.name": "letters",
}
with ks.KafkaStreams(builder, settings) as streams:
    streams.start()
    streams.wait()
"""


@pytest.mark.parametrize(("kills", "seed"), [(1, 3), pytest.param(30, 4, marks=[pytest.mark.slow])])
def test_killed_processes_repeat_and_lose_no_dead_letter(tmp_path: Path, kills: int, seed: int) -> None:
    print(f"seed {seed}")
    moments = random.Random(seed)
    (tmp_path / "in").mkdir()
    world = World(tmp_path)
    world.create("letters")
    world.create("trades")
    rows = 0
    process = start(APPLICATION, tmp_path)
    try:
        for _ in range(kills):
            kill_at = time.monotonic() + moments.uniform(0.7, 1.6)
            while time.monotonic() < kill_at:
                rows = add_file(tmp_path / "in", rows)
                time.sleep(0.02)
            kill(process)
            process = start(APPLICATION, tmp_path)
        deadline = time.monotonic() + 200
        while len(world.rows("trades", int, bytes)) < rows - rows // 50 and time.monotonic() < deadline:
            time.sleep(1)  # the application needs the processor more
    finally:
        kill(process)
    letters = [value for value, _ in letters_of(world)]
    assert sorted(letters) == sorted(f"bad {number},1.5".encode() for number in range(0, rows, 50))
    assert sorted(row.key for row in world.rows("trades", int, bytes)) == [n for n in range(rows) if n % 50]


def add_file(folder: Path, rows: int) -> int:
    """Add a file with the next hundred rows, two of which cannot be read. Return the number of all rows."""
    lines = [f"{'bad ' if number % 50 == 0 else ''}{number},1.5\n" for number in range(rows, rows + 100)]
    (folder / "new").write_text("id,price\n" + "".join(lines))
    (folder / "new").rename(folder / f"{rows}.csv")
    return rows + 100


def read(world: World, source: Source, config: dict[str, str] = CONFIG) -> list[tuple[Any, Any]]:
    """Read everything that a source has into a topic, and return its keys and values."""
    world.create("letters")
    world.create("trades")
    builder = ks.StreamsBuilder()
    builder.stream(source, name="trades").to("trades")
    with ks.KafkaStreams(builder, {**world.settings, **config}) as streams:
        streams.start(until_end=True)
        streams.wait()
    return [(row.key, row.value) for rows in world.partitions("trades", source.key, source.value) for row in rows]


def letters_of(world: World) -> list[tuple[bytes, ks.DeadLetter]]:
    """The values of all dead letters, and what their headers say."""
    with world.log() as log:
        rows = topic_rows(log, "letters")
    letters = [(value, ks.DeadLetter.of(tuple(headers.items()))) for _, value, headers in rows]
    assert all(value is not None and letter is not None for value, letter in letters)
    return letters  # type: ignore[return-value]
