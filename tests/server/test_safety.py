"""Who gets no answer: each route with each method and each kind of credentials, from the router itself."""

from __future__ import annotations

import itertools
import os
import socket
import stat

import pytest

from kstreams.config import Config
from kstreams.errors import ConfigError
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.server import Server, application
from kstreams.server.application import page_files
from kstreams.server.instances import Instances
from tests.native.world import World
from tests.server.conftest import every_kind
from tests.server.served import Client, served

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT")
HEALTH = ("/health/live", "/health/ready")
PAGE = tuple(endpoint.path for endpoint in page_files())
DATA = (b"kafka_streams", b"k3", b"slash", b"timestamp", b"RUNNING", b'rows":', b"openapi")


def targets(world: World, token: str) -> list[str]:
    """A request for each route that the router has."""
    routes = application(KafkaStreams(every_kind(), world.settings), token).routes
    assert len(routes) > 8
    paths = [route.path for route in routes]  # type: ignore[attr-defined]
    asked = [path for path in paths if path not in (*HEALTH, *PAGE)]
    return [path.replace("{store}", "counts").replace("{key:path}", "k3").replace("{topic}", "in") for path in asked]


def credentials(token: str) -> dict[str, str]:
    return {
        "none": "", "wrong": "Bearer " + "x" * len(token), "prefix": f"Bearer {token[:-1]}", "bare": token,
        "longer": f"Bearer {token}x", "scheme": f"Basic {token}", "empty": "Bearer ", "odd": "Bearer \xe9",
    }  # fmt: skip


def test_nobody_without_the_token_gets_data(client: Client, world: World) -> None:
    everything = [*targets(world, client.token), "/", "/v1", "/v2/x", "/v1/stores/private/rows", "/v1/../v1/status"]
    for target, method, (kind, given) in itertools.product(everything, METHODS, credentials(client.token).items()):
        answer = client.ask(target, method, Authorization=given)
        assert answer.status == 401, (target, method, kind, answer)
        assert not any(word in answer.body for word in DATA)


def test_the_page_is_open_and_has_no_data(client: Client) -> None:
    for target, method in itertools.product(PAGE, METHODS):
        answer = client.ask(target, method, Authorization="")
        assert answer.status == (200 if method == "GET" else 405), (target, method, answer)
        assert client.token.encode() not in answer.body
        assert not any(word in answer.body for word in (b"kafka_streams", b"k3", b"slash", b"openapi", b"counts-"))
    assert client.ask("/ui?x=1", Authorization="").status == 400


def test_health_is_told_without_the_token_and_nothing_beside_it(client: Client) -> None:
    for target, method in itertools.product(HEALTH, METHODS):
        answer = client.ask(target, method, Authorization="")
        assert answer.status == (200 if method == "GET" else 405), (target, method, answer)
        assert not any(word in answer.body for word in DATA)
        assert len(answer.body) < 100
    assert client.ask("/health/live?x=1", Authorization="").status == 400


def test_with_the_token_only_what_is_listed_is_there(client: Client, world: World) -> None:
    for target, method in itertools.product(targets(world, client.token), METHODS[1:]):
        answer = client.ask(target, method)
        assert (answer.status, answer.headers["Allow"]) == (405, "GET"), (target, method, answer)
        assert not any(word in answer.body for word in DATA)
    for target in ("/", "/v1", "/v1/", "/v1/stores/", "/v1/stores/counts/nothing", "/docs", "/v1/stores/counts/rows/"):
        assert client.ask(target).status == 404, target


def test_a_store_that_is_not_declared_is_as_if_it_were_not_there(client: Client) -> None:
    for rest in ("", "/rows", "/keys/k3", "/count", "/watch"):
        private, missing = (client.ask(f"/v1/stores/{store}{rest}") for store in ("private", "nowhere"))
        assert (private.status, private.body) == (missing.status, missing.body)
        assert private.status == 404
    assert b"private" not in client.ask("/v1/lag").body


OTHER_HOSTS = [
    "evil.example", "127.0.0.1.evil.example", "", "localhost.", "[::1", "2130706433", "127.0.0.1:1@evil.com",
    "[::1].evil.com", "[::1]x", "localhost:abc", "localhost:", "localhost:1:2", "localhost:123456", "a@localhost",
    "localhost/", "localhost?x", "localhost,evil.com", "localhost evil.com", "[::1]:80:80", "[localhost]", "::1",
]  # fmt: skip


@pytest.mark.parametrize("host", OTHER_HOSTS)
def test_another_name_is_refused_even_with_the_token(client: Client, host: str) -> None:
    assert client.ask("/v1/status", Host=host or " ").status in (400, 403)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:65535", "[::1]", "[::1]:8080"])
def test_the_names_of_this_machine_are_admitted_with_any_port(client: Client, host: str) -> None:
    assert client.ask("/v1/status", Host=host).status == 200


def test_bodies_and_long_addresses_are_refused(client: Client) -> None:
    assert client.ask("/v1/status?" + "x" * 9_000).status == 414
    assert client.ask("/v1/status", Content_Length="5").status == 413
    assert client.ask("/v1/status", Transfer_Encoding="chunked").status in (400, 413)
    assert client.ask("/v1/status", X_Long="x" * 100_000).status in (400, 431)


def test_answers_are_for_nobody_else(client: Client) -> None:
    headers = client.ask("/v1/status", Origin="https://evil.example").headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert not any(name.lower().startswith("access-control") for name in headers)
    assert "server" not in headers


def test_the_token_is_in_a_file_for_its_owner_and_in_no_answer(client: Client, world: World) -> None:
    file = Instances(Config.of(world.settings)).token_file
    assert file.read_text() == client.token
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    for target in targets(world, client.token):
        if not target.endswith("/watch"):
            answer = client.ask(target)
            assert client.token.encode() not in answer.body + str(answer.headers).encode()


def test_what_is_no_http_harms_nobody(client: Client) -> None:
    for garbage in (b"\x00" * 64, b"GET / HTTP/9\r\n\r\n", b"GET /v1/status HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"):
        with socket.create_connection(client.host[:2], timeout=10) as connection:
            connection.sendall(garbage)
            assert b"RUNNING" not in connection.recv(4096)
    assert client.ask("/v1/status", "BREW").status == 400
    assert client.ask("/v1/status").status == 200


def test_an_error_is_told_outside_in_general_words(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(world, every_kind(), application_id="failing") as (client, streams):
        monkeypatch.setattr(streams, "progress", lambda: 1 / 0)
        answer = client.ask("/v1/status")
    assert answer.status == 500
    assert b"division" not in answer.body
    assert b"Zero" not in answer.body


def test_each_start_has_a_token_of_its_own(world: World) -> None:
    tokens = []
    for _ in range(2):
        with served(world, every_kind(), application_id="twice") as (client, _):
            tokens.append(client.token)
    assert tokens[0] != tokens[1]
    assert min(map(len, tokens)) >= 40


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1", "127.0.0.1:99999", "203.0.113.1:0", "0.0.0.0:0"])
def test_an_address_that_cannot_be_one_is_refused(world: World, address: str) -> None:
    with pytest.raises(ConfigError):
        Server(address, Config.of(world.settings))


def test_a_short_token_is_refused(world: World) -> None:
    with pytest.raises(ConfigError, match="at least 16 characters"):
        application(KafkaStreams(every_kind(), world.settings), token="short")
