"""Pages: each row once, whatever its key is made of and whatever goes between two pages."""

from __future__ import annotations

import base64
import itertools
import math
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
import pytest

import kstreams as ks
from kstreams.serdes import serde_of
from tests.native.world import World, until
from tests.server.served import Client, served


@dataclass(frozen=True)
class Flight:
    carrier: str
    number: int


class Reading(msgspec.Struct, frozen=True):
    sensor: bytes


class Pair(NamedTuple):
    left: str
    right: int


KEYS: dict[str, tuple[Any, list[Any]]] = {
    "int": (int, [-(2**63), -1, 0, 2**62]),
    "float": (float, [math.nan, -math.inf, -2.5, math.inf]),
    "str": (str, ["", "/", "//", "..", "a/", "a+b", "ü😀", "%41", "\x00", "null"]),
    "bytes": (bytes, [b"", b"\x00\xff", b"abc"]),
    "bool": (bool, [True, False]),
    "datetime": (datetime, [datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 0, 0, 0, 5, tzinfo=UTC)]),
    "uuid": (uuid.UUID, [uuid.UUID(int=5), uuid.UUID(int=2**127)]),
    "dataclass": (Flight, [Flight("x", 1), Flight("/", 2)]),
    "struct": (Reading, [Reading(b"\x01"), Reading(b"\xff")]),
    "tuple": (Pair, [Pair("x", 1), Pair("y", 2)]),
}


def stores_by_every_key() -> ks.Topology:
    builder = ks.StreamsBuilder()
    for name, (kind, _) in KEYS.items():
        builder.table(f"{name}s", key=kind, value=str, materialized=ks.Materialized(f"{name}-table", queryable=True))
        grouped = builder.stream(f"{name}-events", key=kind, value=str).group_by_key()
        kept: dict[str, Any] = {"retention": 10**9, "queryable": True}
        grouped.windowed_by(ks.TimeWindows(size=10)).count(ks.Materialized(f"{name}-windows", **kept))
        grouped.windowed_by(ks.SessionWindows(gap=10)).count(ks.Materialized(f"{name}-sessions", **kept))
    return builder.build()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Asks stores that have each key three times, and a window and a session for each time."""
    folder: Path = tmp_path_factory.mktemp("paging")
    world = World(folder, **{"commit.interval.ms": 20})
    for name, (kind, keys) in KEYS.items():
        rows = [(serde_of(kind).serialize(key), str(at), at) for at in (0, 50, 100) for key in keys]
        for topic in (f"{name}s", f"{name}-events"):
            world.create(topic, 2)
            world.write(topic, rows)
    with served(world, stores_by_every_key()) as (client, _):
        for name, (_, keys) in KEYS.items():
            for store, count in (("table", 1), ("windows", 3), ("sessions", 3)):
                most, at = count * len(keys), f"/v1/stores/{name}-{store}/rows"
                until(lambda at=at, most=most: len(client.rows(at)) == most)
        yield client


def pages(client: Client, target: str) -> list[dict[str, Any]]:
    """The rows of a question, one by one."""
    found, cursor = [], ""
    for _ in range(100):
        answer = client.ask(f"{target}{'&' if '?' in target else '?'}limit=1{cursor}")
        assert answer.status == 200, (target, len(found), answer)
        page = answer.json()
        found += page["rows"]
        cursor = f"&cursor={page['next']}"
        if page["next"] is None:
            return found
    raise AssertionError(f"no end of {target}")


@pytest.mark.parametrize("order", ["ascending", "descending"])
@pytest.mark.parametrize("store", ["table", "windows", "sessions"])
@pytest.mark.parametrize("name", KEYS)
def test_pages_by_keys_of_each_type_have_each_row_once(client: Client, name: str, store: str, order: str) -> None:
    target = f"/v1/stores/{name}-{store}/rows?order={order}"
    assert pages(client, target) == client.rows(target)


SESSIONS = "/v1/stores/sessions"


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[tuple[Client, World]]:
    """Sessions of the keys a to e, of one record each, which further records make longer."""
    world = World(tmp_path, **{"commit.interval.ms": 20})
    world.create("in", 1)
    world.write("in", [(key, "", 1_000 * at) for at in range(3) for key in "abcde"])
    builder = ks.StreamsBuilder()
    kept = ks.Materialized("sessions", retention=10**9, queryable=True)
    builder.stream("in", key=str, value=str).group_by_key().windowed_by(ks.SessionWindows(gap=100, grace=10**8)).count(
        kept
    )
    with served(world, builder.build()) as (client, _):
        until(lambda: len(client.rows(f"{SESSIONS}/rows")) == 15)
        yield client, world


@pytest.mark.parametrize("target", [f"{SESSIONS}/rows?limit=7", f"{SESSIONS}/keys/c?limit=2"])
def test_a_page_goes_on_where_the_one_before_ended_when_its_last_session_has_grown(
    sessions: tuple[Client, World], target: str
) -> None:
    client, world = sessions
    first = client.ask(target).json()
    last = first["rows"][-1]
    world.write("in", [(last["key"], "", last["window_end"] + 50)])
    grown = {**last, "window_end": last["window_end"] + 50, "value": 2}
    until(lambda: grown in client.rows(f"{SESSIONS}/keys/{last['key']}"))
    following = client.ask(f"{target}&cursor={first['next']}").json()["rows"]
    assert following[0] == grown
    behind = client.rows(f"{SESSIONS}/rows")
    assert following[1] in behind[behind.index(grown) + 1 :]


def cursor(*after: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode({"partition": 0, "after": after})).decode().rstrip("=")


@pytest.mark.parametrize("after", [(), (1,), ("!",), ("YQ", "x"), ("YQ==", -1), ("YQ==", 0, 2**70), ("/w==",), (None,)])
@pytest.mark.parametrize("store", ["str-table", "str-windows", "str-sessions"])
def test_a_cursor_that_was_tampered_with_is_refused(client: Client, store: str, after: tuple[Any, ...]) -> None:
    answer = client.ask(f"/v1/stores/{store}/rows?cursor={cursor(*after)}")
    assert answer.status == 400, answer
    assert "cursor" in answer.json()["error"]


@pytest.mark.parametrize("partition", [-(2**70), -2, -1, 2, 99_999, 2**31, 2**70, None, "0", 0.5, True, [0]])
@pytest.mark.parametrize("target", ["rows?", "rows?order=descending&", "keys/a?", "rows?partition=1&"])
@pytest.mark.parametrize("store", ["str-table", "str-windows", "str-sessions"])
def test_a_cursor_of_a_partition_that_the_store_does_not_have_is_refused(
    client: Client, store: str, target: str, partition: Any
) -> None:
    text = base64.urlsafe_b64encode(msgspec.json.encode({"partition": partition, "after": None})).decode().rstrip("=")
    answer = client.ask(f"/v1/stores/{store}/{target}cursor={text}")
    assert answer.status == 400, answer
    assert "cursor" in answer.json()["error"]


def test_a_cursor_of_another_partition_than_the_one_that_is_asked_is_refused(client: Client) -> None:
    assert client.ask(f"/v1/stores/str-table/rows?partition=1&cursor={cursor()}").status == 400


def test_an_altered_cursor_is_refused_or_gives_rows_of_the_store(client: Client) -> None:
    """Each byte of the cursors of a store of each kind, altered in several ways."""
    for store in ("str-table", "str-windows", "str-sessions"):
        place = f"/v1/stores/{store}/rows"
        rows = client.rows(f"{place}?limit=500")
        text = client.ask(f"{place}?limit=2").json()["next"]
        for at, altered in itertools.product(range(len(text)), "A_-0=~"):
            answer = client.ask(f"{place}?limit=3&cursor={text[:at]}{altered}{text[at + 1 :]}")
            assert answer.status in (200, 400), (store, at, altered, answer)
            assert answer.status == 400 or all(row in rows for row in answer.json()["rows"])


def test_a_cursor_that_is_deep_is_refused(client: Client) -> None:
    deep = b'{"partition":0,"after":null,"more":' + b"[" * 4_000
    answer = client.ask(f"/v1/stores/str-table/rows?cursor={base64.urlsafe_b64encode(deep).decode().rstrip('=')}")
    assert answer.status == 400, answer


@pytest.mark.parametrize("name", KEYS)
def test_each_key_is_found_as_its_row_shows_it(client: Client, name: str) -> None:
    for row in client.rows(f"/v1/stores/{name}-table/rows"):
        shown = row["key"]
        plain = shown["base64"] if name == "bytes" else shown
        text = quote(plain if isinstance(plain, str) else msgspec.json.encode(plain), safe="")
        place = f"/v1/stores/{name}-table/keys"
        for target in (f"{place}/{text}", f"{place}?key={text}", f"{place}/{text}?isolation=read_uncommitted"):
            assert client.rows(target) == [row], target


@pytest.mark.parametrize(
    "target",
    [
        "int-table/keys/9223372036854775808", "int-table/keys/9223372036854775808?isolation=read_uncommitted",
        "int-table/rows?low=9223372036854775808", "int-windows/keys/9223372036854775808",
        "datetime-table/keys/2024-01-01T00:00:00", "dataclass-table/keys/%7B%7D", "tuple-table/keys/%7B%22left%22:1%7D",
        "dataclass-table/keys/" + "%5B" * 1_000,
    ],
)  # fmt: skip
def test_a_key_that_no_store_can_hold_is_refused_and_nothing_is_logged_as_a_failure(
    client: Client, target: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = client.ask(f"/v1/stores/{target}")
    assert answer.status == 400, answer
    assert "key" in answer.json()["error"]
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "WARNING")]
