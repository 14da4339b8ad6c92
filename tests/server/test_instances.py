"""Several instances of an application: any of them answers for all keys, and says who helped."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import ConfigError
from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.native.stores.metadata import HostInfo, PartitionHosts
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.server import Server
from kstreams.server.store_query_service import position_text
from kstreams.state.queries import RangeQuery
from tests.native.world import World, tasks_of, until
from tests.server.served import Client, served

COUNTS = "/v1/stores/counts"
Pair = list[tuple[Client, KafkaStreams]]


@cache  # instances in one process share the tasks of one topology
def counts() -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().count(ks.Materialized("counts", queryable=True))
    return builder.build()


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path, **{"commit.interval.ms": 20})
    made.create("in", 4)
    made.write("in", [(f"k{i % 20}", "", i) for i in range(200)])
    return made


def total(client: Client) -> int:
    """How many records an instance finds counted; 0 while tasks move."""
    return sum(row["value"] for row in client.rows(f"{COUNTS}/rows"))


def both(world: World, stack: ExitStack, **settings: Any) -> Pair:
    """Two instances that share the tasks."""
    pair = [stack.enter_context(served(world, counts(), **settings)) for _ in range(2)]
    until(lambda: all(0 < len(tasks_of(streams)) < 4 for _, streams in pair))
    until(lambda: all(total(client) == 200 for client, _ in pair))
    return pair


@pytest.fixture
def pair(world: World) -> Iterator[Pair]:
    with ExitStack() as stack:
        yield both(world, stack)


def test_any_instance_answers_for_any_key_and_for_ranges(pair: Pair) -> None:
    addresses = {str(client.host) for client, _ in pair}
    assert pair[0][0].token == pair[1][0].token
    for client, _ in pair:
        page = client.ask(f"{COUNTS}/rows").json()
        assert sorted(row["key"] for row in page["rows"]) == sorted(f"k{i}" for i in range(20))
        assert set(page["instances"].values()) == addresses
        assert set(page["position"]) == {f"in-{number}" for number in range(4)}
        assert [client.rows(f"{COUNTS}/keys/k{i}")[0]["value"] for i in range(20)] == [10] * 20
        helpers = [set(client.ask(f"{COUNTS}/keys/k{i}").json()["instances"].values()) for i in range(20)]
        assert all(len(each) == 1 for each in helpers)
        assert set.union(*helpers) == addresses


def test_the_entries_of_all_instances_are_counted(pair: Pair) -> None:
    for client, _ in pair:
        count = client.ask(f"{COUNTS}/count").json()
        assert set(count["instances"].values()) == {str(each.host) for each, _ in pair}
        assert sorted(count["instances"]) == ["0", "1", "2", "3"]
        assert (count["count"] >= 20, count["is_estimate"]) == (True, True)
        parts = [client.ask(f"{COUNTS}/count?partition={number}").json()["count"] for number in range(4)]
        assert sum(parts) == count["count"]


def test_pages_go_on_from_instance_to_instance(pair: Pair) -> None:
    for client, _ in pair:
        keys, cursor = [], ""
        for _ in range(30):
            page = client.ask(f"{COUNTS}/rows?limit=3{cursor}").json()
            keys += [row["key"] for row in page["rows"]]
            cursor = f"&cursor={page['next']}"
            if page["next"] is None:
                break
        assert sorted(keys) == sorted(f"k{i}" for i in range(20))


def test_an_instance_alone_answers_for_what_it_has(pair: Pair) -> None:
    (one, _), (other, _) = pair
    statuses = [
        [client.ask(f"{COUNTS}/rows?local=true&partition={n}").status for n in range(4)] for client in (one, other)
    ]
    assert sorted(zip(*statuses, strict=True)) == [(200, 503)] * 2 + [(503, 200)] * 2


def test_when_an_instance_goes_the_other_answers_for_all(world: World) -> None:
    with ExitStack() as first, ExitStack() as second:
        one, _ = first.enter_context(served(world, counts()))
        other, streams = second.enter_context(served(world, counts()))
        until(lambda: 0 < len(tasks_of(streams)) < 4 and total(one) == 200)
        first.close()
        until(lambda: total(other) == 200)
        assert set(other.ask(f"{COUNTS}/rows").json()["instances"].values()) == {str(other.host)}


def test_a_standby_answers_in_its_own_instance_where_stale_answers_will_do(world: World) -> None:
    with ExitStack() as stack:
        for client, _ in both(world, stack, num_standby_replicas=1):
            here = {str(client.host)}

            def answers_alone(client: Client = client, here: set[str] = here) -> bool:
                answer = client.ask(f"{COUNTS}/rows?stale=true")
                page = answer.json() if answer.status == 200 else {"rows": [], "instances": {}}
                return set(page["instances"].values()) == here and len(page["rows"]) == 20

            until(answers_alone)


@pytest.mark.parametrize("active", [None, HostInfo("127.0.0.1", 1)])
def test_the_standby_of_another_instance_answers_where_the_active_one_is_gone(
    world: World, monkeypatch: pytest.MonkeyPatch, active: HostInfo | None
) -> None:
    with ExitStack() as stack:
        (client, streams), (other, _) = both(world, stack, num_standby_replicas=1)
        number = next(int(task.partition("_")[2]) for task in tasks_of(streams))
        target, local = f"{COUNTS}/rows?partition={number}", f"{COUNTS}/rows?partition={number}&stale=true&local=true"
        rows = client.rows(target)
        until(lambda: other.rows(local) == rows)
        monkeypatch.setattr(streams, "partition_hosts", lambda store: {number: PartitionHosts(active, (other.host,))})
        page = client.ask(f"{target}&stale=true").json()
        assert (page["rows"], page["instances"]) == (rows, {str(number): str(other.host)})
        if active is not None:
            assert client.ask(target).status == 503


def test_a_standby_says_up_to_where_it_has_read_the_changelog(world: World) -> None:
    changelogs = [TopicPartition("app-counts-changelog", number) for number in range(4)]
    with ExitStack() as stack:
        pair = both(world, stack, num_standby_replicas=1)
        with world.log() as log, log.admin() as admin:
            last = {str(source): end - 1 for source, end in admin.end_offsets(changelogs).items()}
        for client, streams in pair:

            def is_up_to_the_end(client: Client = client, streams: KafkaStreams = streams) -> bool:
                active = {int(task.partition("_")[2]) for task in tasks_of(streams)}
                followed = {str(source) for source in changelogs if source.partition not in active}
                answer = client.ask(f"{COUNTS}/rows?stale=true")
                position = answer.json()["position"] if answer.status == 200 else {}
                found = streams.query("counts", RangeQuery()).position
                told = {source: position.get(source) for source in followed}
                return told == {source: last[source] for source in followed} and position == position_text(found)

            until(is_up_to_the_end)


def test_the_places_of_stores_are_known_in_the_process(pair: Pair) -> None:
    hosts = {client.host for client, _ in pair}
    for client, streams in pair:
        assert {each.host for each in streams.streams_metadata_for_store("counts")} == hosts
        assert set.union(*(set(each.active) for each in streams.streams_metadata_for_store("counts"))) == set(range(4))
        for number in range(20):
            found = streams.query_metadata_for_key("counts", f"k{number}")
            (helper,) = client.ask(f"{COUNTS}/keys/k{number}").json()["instances"].items()
            assert (str(found.partition), str(found.active)) == helper
        lags = streams.all_local_store_partition_lags()["counts"]
        assert len(lags) == 2
        assert all(each.lag == 0 for each in lags.values())


def test_instances_on_several_machines_share_the_token_of_a_file(world: World) -> None:
    file = world.folder / "token"
    settings = {"server_token_file": file}
    given = Config.of({**world.settings, "server.token.file": file})
    streams = KafkaStreams(counts(), given)
    with pytest.raises(ConfigError, match="there is no file"), Server("127.0.0.1:0", given).serving(streams):
        pass
    file.write_text("a-token-that-is-long-enough\n")
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="others may read"), Server("127.0.0.1:0", given).serving(streams):
        pass
    file.chmod(0o600)
    with served(world, counts(), **settings) as (client, _):
        assert client.token == "a-token-that-is-long-enough"
        assert client.ask("/v1/status").status == 200
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600


def test_an_address_names_a_host_and_a_port() -> None:
    assert HostInfo.of("[::1]:80") == HostInfo("[::1]", 80)
    assert HostInfo.of("host") is None
    assert HostInfo.of("host:port") is None
