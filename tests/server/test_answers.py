"""What the server answers about stores of each kind."""

from __future__ import annotations

import math
import re
import struct

import msgspec
import pyarrow as pa
import pytest

import kstreams as ks
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.server import application
from tests.native.world import World, until
from tests.server.conftest import every_kind
from tests.server.served import Client, served

STORES = "/v1/stores"


class Means(msgspec.Struct, frozen=True):
    count: int
    mean: float


def test_a_key_is_looked_up(client: Client) -> None:
    page = client.ask(f"{STORES}/counts/keys/k3").json()
    assert page["rows"] == [{"key": "k3", "value": 10, "timestamp": 93_000}]
    assert page["isolation"] == "read_committed"
    assert set(page["instances"].values()) == {str(client.host)}
    assert all(source.startswith("in-") for source in page["position"])
    assert client.ask(f"{STORES}/counts/keys/nobody").json()["rows"] == []


def test_a_key_may_hold_any_character(client: Client) -> None:
    assert client.rows(f"{STORES}/names/keys/a%2Fb%20c") == [{"key": "a/b c", "value": "slash", "timestamp": 1}]
    assert client.rows(f"{STORES}/names/keys/a/b%20c") == client.rows(f"{STORES}/names/rows")


def test_a_key_has_one_answer_whichever_way_it_goes(client: Client) -> None:
    """Without parameters it is answered at once, with some it goes through the router."""
    for key in ("k3", "nobody"):
        at_once, routed = (
            client.ask(f"{STORES}/counts/keys/{key}{rest}") for rest in ("", "?isolation=read_committed")
        )
        assert at_once.json() == routed.json()
        headers = [{name: text for name, text in each.headers.items() if name != "date"} for each in (at_once, routed)]
        assert headers[0] == headers[1]


def test_requests_on_one_connection_are_answered_in_their_order(client: Client) -> None:
    targets = [f"{STORES}/counts/keys/k{number}{rest}" for number in range(10) for rest in ("", "?limit=1")]
    with client.raw() as connection:
        connection.sendall(b"".join(map(client.request, targets)))
        answered = b""
        while answered.count(b'"next":null}') < len(targets):
            answered += connection.recv(65_536)
    assert re.findall(rb'"key":"(k\d)"', answered) == [b"k%d" % (number // 2) for number in range(20)]


def test_several_keys_are_looked_up_in_one_request(client: Client) -> None:
    page = client.ask(f"{STORES}/counts/keys?key=k3&key=nobody&key=k1").json()
    assert [(row["key"], row["value"]) for row in page["rows"]] == [("k3", 10), ("k1", 10)]
    assert page["rows"] == client.rows(f"{STORES}/counts/keys?key=k3&key=nobody&key=k1&isolation=read_uncommitted")
    assert page["next"] is None
    assert page["position"] == client.ask(f"{STORES}/counts/rows").json()["position"]


def test_ranges_and_prefixes_are_read_over_all_partitions(client: Client) -> None:
    def keys(query: str) -> list[str]:
        return sorted(row["key"] for row in client.rows(f"{STORES}/counts/rows?{query}"))

    assert keys("") == [f"k{i}" for i in range(10)]
    assert keys("low=k3&high=k5") == ["k3", "k4", "k5"]
    assert keys("high=k1&order=descending") == ["k0", "k1"]
    assert keys("prefix=k7") == ["k7"]
    parts = [keys(f"partition={number}") for number in range(4)]
    assert sorted(key for part in parts for key in part) == keys("")


@pytest.mark.parametrize("order", ["ascending", "descending"])
@pytest.mark.parametrize(("store", "count"), [("counts", 10), ("windows", 100), ("sessions", 10), ("windows/k", 10)])
def test_pages_give_each_row_once_in_the_order_of_one_long_page(
    client: Client, store: str, count: int, order: str
) -> None:
    target = f"{STORES}/windows/keys/k3" if store == "windows/k" else f"{STORES}/{store}/rows"
    found, cursor = [], ""
    for _ in range(count + 4):
        page = client.ask(f"{target}?limit=3&order={order}{cursor}").json()
        assert len(page["rows"]) <= 3
        found += page["rows"]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert len(found) == count
    assert len({str(row) for row in found}) == count
    if count <= 50:
        assert found == client.rows(f"{target}?limit=50&order={order}")


def test_windows_are_read_by_key_and_time(client: Client) -> None:
    rows = client.rows(f"{STORES}/windows/keys/k3?from=20000&to=40000")
    assert [(row["window_start"], row["window_end"], row["value"]) for row in rows] == [
        (20_000, 30_000, 1), (30_000, 40_000, 1), (40_000, 50_000, 1),
    ]  # fmt: skip
    assert client.rows(f"{STORES}/windows/keys/k3?as_of=25000") == rows[:1]
    assert len(client.rows(f"{STORES}/windows/rows?as_of=25000")) == 10
    assert {row["key"] for row in client.rows(f"{STORES}/windows/rows?low=k2&high=k3&limit=50")} == {"k2", "k3"}


def test_sessions_and_versions_are_read(client: Client) -> None:
    (session,) = client.rows(f"{STORES}/sessions/keys/k3")
    assert session == {"key": "k3", "window_start": 3_000, "window_end": 93_000, "value": 10}
    assert client.rows(f"{STORES}/sessions/keys/k3?from=93001") == []
    values = [[row["value"] for row in client.rows(f"{STORES}/versions/keys/a?as_of={time}")] for time in (9, 10, 20)]
    assert values == [[], ["x"], ["y"]]
    assert client.rows(f"{STORES}/versions/keys/nobody?from=0") == []
    history = client.rows(f"{STORES}/versions/keys/a?from=0")
    assert [(row["valid_from"], row["valid_to"]) for row in sorted(history, key=str)] == [(10, 20), (20, None)]


def test_versions_are_read_by_range_and_time(client: Client) -> None:
    def held(query: str) -> list[tuple[str, str]]:
        return [(row["key"], row["value"]) for row in client.rows(f"{STORES}/versions/rows?{query}")]

    assert held("") == [("a", "y"), ("b", "2"), ("c", "1")]
    assert held("as_of=10") == [("a", "x"), ("b", "1")]
    assert held("as_of=15&low=b") == [("b", "2")]
    assert held("order=descending&high=b") == [("b", "2"), ("a", "y")]
    assert held("from=0&to=20") == [("a", "x"), ("a", "y"), ("b", "1"), ("b", "2")]
    assert client.rows(f"{STORES}/versions/rows?as_of=10")[0] == {
        "key": "a", "value": "x", "valid_from": 10, "valid_to": 20,
    }  # fmt: skip


@pytest.mark.parametrize("query", ["from=0", "as_of=10", "order=descending", "from=0&order=descending", "low=b"])
def test_pages_of_versions_give_each_once(client: Client, query: str) -> None:
    target, found, cursor = f"{STORES}/versions/rows?{query}", [], ""
    for _ in range(8):
        page = client.ask(f"{target}&limit=1{cursor}").json()
        found += page["rows"]
        cursor = f"&cursor={page['next']}"
        if page["next"] is None:
            break
    assert found == client.rows(target)
    assert len(found) >= 2


def test_what_is_not_committed_is_seen_when_it_is_asked_for(client: Client) -> None:
    page = client.ask(f"{STORES}/counts/keys/k3?isolation=read_uncommitted").json()
    assert (page["isolation"], page["rows"][0]["value"]) == ("read_uncommitted", 10)


def test_rows_come_as_an_arrow_stream_on_request(client: Client) -> None:
    answer = client.ask(f"{STORES}/counts/rows", Accept="application/vnd.apache.arrow.stream")
    table = pa.ipc.open_stream(answer.body).read_all()
    assert table.num_rows == 10
    assert table.column_names == ["key", "value", "timestamp"]
    assert b'"position"' in table.schema.metadata[b"kstreams"]


def test_stores_counts_lags_and_state_are_told(client: Client) -> None:
    stores = client.ask(STORES).json()["stores"]
    assert [store["name"] for store in stores] == ["counts", "names", "sessions", "versions", "windows"]
    counts = client.ask(f"{STORES}/counts").json()
    assert (counts["kind"], counts["key"], counts["value"]) == ("timestamped-key-value", "str", "int")
    assert {place["active"] for place in counts["partitions"]} == {str(client.host)}
    count = client.ask(f"{STORES}/counts/count").json()
    assert (count["count"] >= 10, count["is_estimate"]) == (True, True)  # RocksDB guesses
    status = client.ask("/v1/status").json()
    assert (status["state"], status["records_in"]) == ("RUNNING", 105)
    lags = client.ask("/v1/lag").json()
    assert {each["store"] for each in lags["stores"]} <= {store["name"] for store in stores}
    assert client.ask("/v1/metadata").json()["threads"][0]["tasks"]


@pytest.mark.parametrize(
    "target",
    [
        "counts/rows?limit=0", "counts/rows?limit=51", "counts/rows?limit=x", "counts/rows?order=up",
        "counts/rows?cursor=nonsense", "counts/rows?cursor=WzEsMl0", "counts/rows?from=1", "counts/rows?prefix=k&low=a",
        "counts/rows?unknown=1", "counts/rows?limit=1&limit=2", "counts/keys/k?prefix=k",
        "versions/rows?prefix=a", "versions/rows?as_of=1&to=2",
        "windows/rows?as_of=1&from=2", "counts/rows?isolation=dirty", "counts/rows?stale=1",
        "counts/rows?timeout_ms=0", "sessions/count", "windows/rows?from=99999999999999999999999",
        "counts/rows?limit=%D9%A3", "counts/keys", "windows/keys?key=k3", "counts/keys?key=k3&limit=1",
        "counts/keys?" + "&".join(["key=k"] * 51),
    ],
)  # fmt: skip
def test_a_question_that_makes_no_sense_is_refused(client: Client, target: str) -> None:
    answer = client.ask(f"{STORES}/{target}")
    assert answer.status == 400, answer
    assert list(answer.json()) == ["error"]


def test_the_document_describes_every_route(client: Client, world: World) -> None:
    document = client.ask("/v1/openapi.json").json()
    streams = KafkaStreams(every_kind(), world.settings)
    paths = {route.path.replace(":path}", "}") for route in application(streams, client.token).routes}
    assert set(document["paths"]) == paths
    rows = document["paths"]["/v1/stores/{store}/rows"]["get"]
    parameters = {parameter["name"]: parameter["schema"] for parameter in rows["parameters"]}
    assert {"low", "cursor", "isolation"} <= parameters.keys()
    assert parameters["order"] == {"type": "string", "enum": ["ascending", "descending"]}
    assert parameters["store"]["enum"] == ["counts", "names", "sessions", "versions", "windows"]


def test_an_aggregate_of_expressions_is_shown_as_the_table_shows_it(world: World) -> None:
    """What is kept of it is a count and a sum."""
    builder = ks.StreamsBuilder()
    values = builder.stream("in", key=str, value=str).map_values(float, value=float)
    totals = {"count": ks.len(), "mean": ks.value.mean()}
    kept = ks.Materialized("means", queryable=True)
    values.group_by_key().aggregate(**totals, value=Means, materialized=kept)
    with served(world, builder.build(), application_id="means") as (client, streams):
        until(lambda: streams.state is State.RUNNING and len(client.rows(f"{STORES}/means/rows")) == 10)
        until(lambda: client.rows(f"{STORES}/means/keys/k3")[0]["value"] == {"count": 10, "mean": 48.0})


def test_an_arrow_stream_has_numbers_that_json_has_no_word_for(world: World) -> None:
    world.create("floats", 1)
    world.write("floats", [("a", struct.pack(">d", math.inf), 1), ("b", struct.pack(">d", 1.5), 1)])
    builder = ks.StreamsBuilder()
    builder.table("floats", key=str, value=float, materialized=ks.Materialized("floats", queryable=True))
    with served(world, builder.build(), application_id="floats") as (client, streams):
        until(lambda: streams.state is State.RUNNING and len(client.rows(f"{STORES}/floats/rows")) == 2)
        assert [row["value"] for row in client.rows(f"{STORES}/floats/rows")] == ["Infinity", 1.5]
        for target in ("rows", "keys?key=a&key=b"):
            answer = client.ask(f"{STORES}/floats/{target}", Accept="application/vnd.apache.arrow.stream")
            assert pa.ipc.open_stream(answer.body).read_all()["value"].to_pylist() == [math.inf, 1.5]


def test_values_of_several_types_are_no_arrow_stream(world: World) -> None:
    world.create("several", 1)
    world.write("several", [("a", b"1", 1), ("b", b'"x"', 1), ("c", b"1e300", 1)])
    builder = ks.StreamsBuilder()
    kept = ks.Materialized("several", queryable=True)
    builder.table("several", key=str, value=int | str | float, materialized=kept)
    with served(world, builder.build(), application_id="several") as (client, streams):
        until(lambda: streams.state is State.RUNNING and len(client.rows(f"{STORES}/several/rows")) == 3)
        answer = client.ask(f"{STORES}/several/rows", Accept="application/vnd.apache.arrow.stream")
        assert (answer.status, "several types" in answer.json()["error"]) == (406, True)
