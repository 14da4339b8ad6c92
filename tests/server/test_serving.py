"""How the server is run: with TLS, or mounted in an ASGI application of the user's own."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

import kstreams as ks
from kstreams.cli.running import RunningApplication
from kstreams.config import Config
from kstreams.errors import ConfigError, StateError
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.stores.metadata import HostInfo
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.server import Server, application
from kstreams.server.instances import running_instances
from kstreams.server.peers import Peers
from tests.native.world import World, until
from tests.server.served import Client
from tests.support.certificates import Authority, can_make

ROWS, TOKEN = "/v1/stores/counts/rows", "a-token-that-is-long-enough"


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path, **{"commit.interval.ms": 20})
    made.create("in", 2)
    made.write("in", [(f"k{i}", "", i) for i in range(10)])
    return made


@cache  # instances in one process share the tasks of one topology
def counts() -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().count(ks.Materialized("counts", queryable=True))
    return builder.build()


@pytest.mark.skipif(not can_make(), reason="needs openssl")
def test_instances_speak_tls_with_clients_and_with_each_other(world: World) -> None:
    pem = Authority(world.folder / "authority").server("IP:127.0.0.1")
    config = Config.of({**world.settings, "server.tls.certificate": pem, "server.tls.key": pem})
    servers, tokens = [Server("127.0.0.1:0", config) for _ in range(2)], list[str]()
    with (
        KafkaStreams(counts(), servers[0].config) as one,
        KafkaStreams(counts(), servers[1].config) as other,
        servers[0].serving(one, tokens.append),
        servers[1].serving(other, tokens.append),
    ):
        one.start()
        other.start()
        assert servers[0].url.startswith("https://")
        assert {each.certificate for each in running_instances(world.folder / "state")} == {str(pem)}
        peers = Peers(tokens[0], pem)

        def helpers(server: Server) -> set[str]:
            with peers.request(server.address, ROWS, {}, 60.0) as answer:
                page = answer.read()
            return {str(each.address) for each in servers if str(each.address).encode() in page}

        until(lambda: [len(helpers(server)) for server in servers] == [2, 2])
        asking = RunningApplication(servers[0].config, running_instances(world.folder / "state"))
        assert len({event["key"] for event in islice(asking.watch("counts", {"prefix": "k"}), 10)}) == 10
        stranger = Peers(tokens[0], Authority(world.folder / "stranger").certificate)
        with pytest.raises(ssl.SSLCertVerificationError), stranger.request(servers[0].address, ROWS, {}, 60.0):
            pass
        plain = Client(servers[0].address, tokens[0])
        with pytest.raises(ConnectionError):
            plain.ask(ROWS)


@pytest.mark.parametrize("asked", [{"prefix": "k"}, {"key": "k3"}])
def test_a_watch_shows_rows_of_all_instances(
    world: World, asked: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = [Server("127.0.0.1:0", Config.of(world.settings)) for _ in range(2)]
    with (
        KafkaStreams(counts(), servers[0].config) as one,
        KafkaStreams(counts(), servers[1].config) as other,
        servers[0].serving(one, lambda token: None),
        servers[1].serving(other, lambda token: None),
    ):
        one.start()
        other.start()
        until(lambda: [len(each.all_local_store_partition_lags()) for each in (one, other)] == [1, 1])
        keys = {"k3"} if "key" in asked else {f"k{i}" for i in range(10)}
        watches = [
            RunningApplication(servers[0].config, [instance]).watch("counts", asked)
            for instance in running_instances(world.folder / "state")
        ]
        for count in (1, 2):
            for changes in watches:
                assert {(event["key"], event["value"]) for event in islice(changes, len(keys))} == {
                    (key, count) for key in keys
                }
            world.write("in", [(key, "", 20) for key in keys])
        monkeypatch.setattr("kstreams.cli.running._RECONNECT_S", 0.5)
        next(watches[0])
    with pytest.raises(StateError, match="no instance answers any more"):
        list(watches[0])


def test_half_of_tls_is_refused(world: World) -> None:
    with pytest.raises(ConfigError, match="belong together"):
        Server("127.0.0.1:0", Config.of({**world.settings, "server.tls.key": "key.pem"}))


@contextmanager
def mounted(
    world: World, path: str = "/stores", *, in_front: str = "", tells: bool = False
) -> Iterator[tuple[Client, KafkaStreams]]:
    """An application below a path of the user's own, and perhaps of a proxy; it may tell others where it answers."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        host = HostInfo("127.0.0.1", listening.getsockname()[1], path)
        settings = {**world.settings, **({"application.server": str(host)} if tells else {})}
        streams = stack.enter_context(KafkaStreams(counts(), settings))
        web = Starlette(middleware=[Middleware(InFront, in_front)])
        web.mount(path, application(streams, TOKEN))
        server = uvicorn.Server(uvicorn.Config(web, lifespan="off", log_config=None))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        stack.callback(thread.join)
        stack.callback(setattr, server, "should_exit", True)
        until(lambda: server.started)
        yield Client(host, TOKEN), streams


class InFront:
    """Says that a proxy has taken a prefix away, as `FastAPI(root_path=...)` does."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app, self._prefix = app, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "root_path": self._prefix}, receive, send)


@pytest.mark.parametrize("in_front", ["", "/of/a/proxy"])
def test_it_is_mounted_in_an_application_of_the_users_own(world: World, in_front: str) -> None:
    with mounted(world, in_front=in_front) as (client, streams):
        assert client.ask(f"/stores{ROWS}").status == 503
        streams.start()
        until(lambda: streams.state is State.RUNNING and len(client.rows(f"/stores{ROWS}")) == 10)
        assert client.ask(f"{in_front}/stores{ROWS}").status == 200
        assert client.ask(f"/stores{ROWS}", Authorization="").status == 401
        assert client.ask(ROWS).status == 404
        assert client.ask("/stores/health/live", Authorization="").status == 200


def test_instances_below_paths_find_each_other_when_they_tell_these(world: World) -> None:
    with ExitStack() as stack:
        (one, first), (other, second) = [
            stack.enter_context(mounted(world, path, tells=True)) for path in ("/stores", "/our/shop")
        ]
        first.start()
        second.start()
        until(lambda: all(len(client.rows(f"{client.host.path}{ROWS}")) == 10 for client in (one, other)))
        until(lambda: str(other.host).encode() in one.ask(f"/stores{ROWS}").body)
        instances = one.ask("/stores/v1/activity").json()["instances"]
        assert {each["instance"] for each in instances} == {str(one.host), str(other.host)}


def test_what_is_no_address_is_refused(world: World) -> None:
    with pytest.raises(ConfigError, match=r"application\.server.*such as '10\.0\.0\.1:8080'"):
        KafkaStreams(counts(), {**world.settings, "application.server": "http://10.0.0.1:8080"})
    with pytest.raises(ConfigError, match="HOST:PORT"):
        Server("127.0.0.1:0/stores", Config.of(world.settings))
