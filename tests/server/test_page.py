"""What the page is made of, and what it asks for: the topology, the activity of all instances, the ends of topics."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

import pytest

import kstreams as ks
from kstreams.runtime.native.lifecycle import State
from tests.native.world import World, tasks_of, until
from tests.server.served import Client, served

TEXTS = {"key": str, "value": str}


@cache  # instances in one process share the tasks of one topology
def lengths() -> ks.Topology:
    builder = ks.StreamsBuilder()
    words = builder.stream("words", **TEXTS)
    words.map_values(len, value=int).to("lengths")
    words.group_by_key().count(ks.Materialized("counts", queryable=True))
    return builder.build()


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path, **{"commit.interval.ms": 20})
    made.create("words", 2)
    made.create("lengths", 2)
    made.write("words", [(f"k{i}", "x" * i, i) for i in range(40)])
    return made


@pytest.fixture
def client(world: World) -> Iterator[Client]:
    with served(world, lengths(), server_tail_topics="words,lengths") as (client, streams):
        until(lambda: streams.state is State.RUNNING and is_done(client))
        yield client


def is_done(client: Client) -> bool:
    """Whether all that is written is processed, counted, and there to be read."""
    [instance] = client.ask("/v1/activity").json()["instances"]
    counted = sum(each["count"] for each in instance["counts"] if each["kind"] in ("read", "written"))
    written = client.ask("/v1/topics/lengths/tail?limit=200").json()["records"]
    return (counted, len(written), sum(each["lag"] for each in instance["lags"])) == (80, 40, 0)


def test_the_files_of_the_page_are_there_for_everybody_and_load_nothing_from_elsewhere(client: Client) -> None:
    names = {file.name for file in files("kstreams.server.ui").joinpath("files").iterdir()} - {"index.html"}
    assert {"main.js", "page.css", "icon.svg"} <= names
    for path in ("/ui", "/ui/topology.css", *(f"/ui/{name}" for name in names)):
        answer = client.ask(path, Authorization="")
        assert answer.status == 200, path
        assert b"://" not in answer.body.replace(b"http://www.w3.org/", b"").replace(b"${location.protocol}//", b"")
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert (answer.headers["x-frame-options"], answer.headers["cache-control"]) == ("DENY", "no-store")
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert client.ask("/ui/../activity_routes.py", Authorization="").status == 401
    assert client.ask("/ui/nothing.js").status == 404


def test_the_picture_has_what_the_page_puts_numbers_on(client: Client) -> None:
    answer = client.ask("/v1/topology.svg")
    assert answer.headers["content-type"].startswith("image/svg+xml")
    root = ElementTree.fromstring(answer.body)
    meters = {each.get("data-meter") for each in root.iter() if each.get("data-meter")}
    assert meters == {"read:KSTREAM-SOURCE-0000000000", "passed:KSTREAM-SOURCE-0000000000", "written:lengths"}
    assert client.ask("/v1/topology").json()["application_id"] == "app"


def test_activity_tells_what_was_read_and_written_and_who_did_it(client: Client) -> None:
    [instance] = client.ask("/v1/activity").json()["instances"]
    counts = {(each["kind"], each["of"]): 0 for each in instance["counts"]}
    for each in instance["counts"]:
        counts[each["kind"], each["of"]] += each["count"]
    assert counts["read", "KSTREAM-SOURCE-0000000000"] == counts["written", "lengths"] == 40
    assert (instance["instance"], instance["state"]) == (str(client.host), "RUNNING")
    assert sorted(task for thread in instance["threads"] for task in thread["tasks"]) == ["0_0", "0_1"]
    assert {(each["topic"], each["partition"]): each["lag"] for each in instance["lags"]} == {
        ("words", 0): 0, ("words", 1): 0,
    }  # fmt: skip


def test_activity_tells_what_was_repartitioned_by_the_name_of_the_topology(world: World) -> None:
    builder = ks.StreamsBuilder()
    by_length = builder.stream("words", **TEXTS).group_by(lambda key, word: len(word), key=int)
    by_length.count(ks.Materialized("by-length"), name="by-length").to_stream().to("lengths", value=int)
    with served(world, builder.build()) as (client, _):

        def repartitioned() -> dict[str, int]:
            [instance] = client.ask("/v1/activity").json()["instances"]
            return {each["of"]: each["count"] for each in instance["counts"] if each["kind"] == "repartitioned"}

        until(lambda: repartitioned() == {"by-length-repartition": 40})


def test_what_operators_pass_on_is_counted_when_the_recording_level_asks_for_it(world: World) -> None:
    builder = ks.StreamsBuilder()
    long = builder.stream("words", **TEXTS, name="read").filter(lambda key, word: len(word) >= 20, name="long")
    long.flat_map_values(list, value=str, name="letters").to("letters", name="write")
    topology = builder.build()
    world.create("letters", 2)

    def counted(client: Client, kind: str) -> dict[str, int]:
        found: Counter[str] = Counter()
        [instance] = client.ask("/v1/activity").json()["instances"]
        for each in instance["counts"]:
            if each["kind"] == kind:
                found[each["of"]] += each["count"]
        return dict(found)

    with served(world, topology, metrics_recording_level="DEBUG") as (client, _):
        until(lambda: counted(client, "forwarded") == {"long>letters": 20, "letters>write": sum(range(20, 40))})
    with served(world, topology) as (client, _):
        world.write("words", [("k", "word", 100)])
        until(lambda: counted(client, "consumed") == {"words": 1})
        assert counted(client, "forwarded") == {}


def test_any_instance_tells_of_all(world: World) -> None:
    with ExitStack() as stack:
        pair = [stack.enter_context(served(world, lengths())) for _ in range(2)]
        until(lambda: all(len(tasks_of(streams)) == 1 for _, streams in pair))
        hosts = [str(client.host) for client, _ in pair]
        for client, _ in pair:

            def told(client: Client = client) -> bool:
                found = client.ask("/v1/activity").json()["instances"]
                return sorted(each["instance"] for each in found if each["threads"]) == sorted(hosts)

            until(told)
            assert client.ask("/v1/activity").json()["instances"][0]["instance"] == str(client.host)
            assert len(client.ask("/v1/activity?local=true").json()["instances"]) == 1


def test_the_tail_of_a_topic_goes_on_where_the_page_before_ended(client: Client, world: World) -> None:
    first = client.ask("/v1/topics/words/tail?limit=10").json()
    assert len(first["records"]) == 10
    assert max(record["timestamp"] for record in first["records"]) == 39
    assert all(record["value"] == "x" * record["timestamp"] for record in first["records"])
    after = json.dumps(first["next"]).replace(" ", "").replace('"', "%22")
    assert client.ask(f"/v1/topics/words/tail?after={after}").json()["records"] == []
    world.write("words", [("new", "later", 100)])
    until(lambda: client.ask(f"/v1/topics/words/tail?after={after}").json()["records"] != [])
    [record] = client.ask(f"/v1/topics/words/tail?after={after}").json()["records"]
    assert (record["key"], record["value"], record["timestamp"]) == ("new", "later", 100)


def test_records_are_decoded_by_the_types_of_the_topic(client: Client) -> None:
    values = {record["value"] for record in client.ask("/v1/topics/lengths/tail?limit=200").json()["records"]}
    assert values == set(range(40))


def test_what_comes_faster_than_it_is_shown_is_said_to_be_left_out(client: Client) -> None:
    page = client.ask("/v1/topics/words/tail?limit=10&after=%7B%220%22:0,%221%22:0%7D").json()
    assert (len(page["records"]), page["skipped"]) == (10, 30)


@pytest.mark.parametrize("query", [
    "limit=0", "limit=201", "after=nothing", "after=%5B1%5D", "other=1", "after=%7B%220%22:-1%7D",
    "after=%7B%22-1%22:0%7D", "after=%7B%220%22:9223372036854775808%7D", "after=%7B%220%22:null%7D", "after=%FF",
    "after=%7B%220%22:" + "[" * 4_000,
])  # fmt: skip
def test_a_tail_that_makes_no_sense_is_refused(client: Client, query: str) -> None:
    assert client.ask(f"/v1/topics/words/tail?{query}").status == 400


@pytest.mark.parametrize(("declared", "readable"), [
    ("", []),
    ("words", ["words"]),
    ("*", ["counts-changelog", "lengths", "words"]),
    ("app-counts-changelog, elsewhere", ["counts-changelog"]),
])  # fmt: skip
def test_only_declared_topics_of_the_topology_are_shown(world: World, declared: str, readable: list[str]) -> None:
    world.create("elsewhere")
    with served(world, lengths(), server_tail_topics=declared) as (client, streams):
        until(lambda: streams.state is State.RUNNING)
        assert client.ask("/v1/topics").json() == {"topics": readable}
        for topic in ("words", "lengths", "counts-changelog", "elsewhere"):
            assert client.ask(f"/v1/topics/{topic}/tail").status == (200 if topic in readable else 404), topic
