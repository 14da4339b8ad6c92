"""Who may read which stores: readers with tokens of their own, and the stores that are theirs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from kstreams.errors import ConfigError
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.server import application
from tests.native.world import World, until
from tests.server.conftest import every_kind
from tests.server.served import Client, served
from tests.server.test_safety import DATA, METHODS

COUNTER, NAMER, NOBODY = "token-of-who-reads-counts", "token-of-who-reads-names", "token-of-who-reads-nothing"
READERS = f"""
[counter]
token = "{COUNTER}"
stores = ["counts", "windows", "private"]

[namer]
token = "{NAMER}"
stores = ["names"]

[nobody]
token = "{NOBODY}"
stores = []
"""
MAY_READ = {COUNTER: {"counts", "windows"}, NAMER: {"names"}, NOBODY: set[str]()}
OF_STORES = ("", "/rows", "/keys/k3", "/keys?key=k3", "/count", "/watch")


def readers_file(folder: Path, text: str = READERS, mode: int = 0o600) -> Path:
    made = folder / "readers.toml"
    made.write_text(text)
    made.chmod(mode)
    return made


@pytest.fixture(scope="module")
def owner(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    file = readers_file(tmp_path_factory.mktemp("readers"))
    with served(world, every_kind(), application_id="readers", server_readers_file=file) as (client, streams):
        until(lambda: streams.state is State.RUNNING)
        until(lambda: len(client.rows("/v1/stores/counts/rows")) == 10)
        until(lambda: len(client.rows("/v1/stores/names/rows")) == 1)
        yield client


@pytest.mark.parametrize("token", MAY_READ)
def test_a_reader_reads_its_stores_and_all_others_are_as_if_they_were_not_there(owner: Client, token: str) -> None:
    reader = Client(owner.host, token)
    missing = owner.ask("/v1/stores/nowhere/rows")
    for store, rest in itertools.product(("counts", "windows", "names", "sessions", "private", "nowhere"), OF_STORES):
        target = f"/v1/stores/{store}{rest}"
        if store not in MAY_READ[token]:
            answer = reader.ask(target)
            assert (answer.status, answer.body) == (404, missing.body), target
        elif rest == "/rows":
            assert reader.ask(target).json()["rows"] == owner.ask(target).json()["rows"]
    assert {store["name"] for store in reader.ask("/v1/stores").json()["stores"]} == MAY_READ[token]


def test_a_reader_is_told_nothing_but_stores(owner: Client, world: World) -> None:
    routes = application(KafkaStreams(every_kind(), world.settings), owner.token).routes
    others = [route.path for route in routes if not route.path.startswith("/v1/stores") and not route.is_open]
    assert {"/v1/status", "/v1/lag", "/metrics", "/v1/openapi.json"} <= set(others)
    for target, token in itertools.product(others, MAY_READ):
        answer = Client(owner.host, token).ask(target)
        assert answer.status == 403, target
        assert not any(word in answer.body for word in DATA)
        assert owner.ask(target).status == (404 if "{topic}" in target else 200)


def test_a_reader_only_reads(owner: Client) -> None:
    for method, rest in itertools.product(METHODS[1:], OF_STORES):
        answer = Client(owner.host, COUNTER).ask(f"/v1/stores/counts{rest}", method)
        assert answer.status == 405, (method, rest)


def test_a_key_is_given_to_who_may_read_it_alone(owner: Client) -> None:
    """This is the answer that is made without a task of the event loop."""
    target = "/v1/stores/counts/keys/k3"
    statuses = {token: Client(owner.host, token).ask(target).status for token in (*MAY_READ, owner.token, "x" * 43)}
    assert list(statuses.values()) == [200, 404, 404, 200, 401]


def test_instances_ask_each_other_for_a_reader(world: World, tmp_path: Path) -> None:
    file = readers_file(tmp_path)
    one, other = (
        served(world, every_kind(), application_id="two", server_readers_file=file) for _ in range(2)
    )  # fmt: skip
    with one as (first, _), other as (second, _):
        readers = [Client(client.host, COUNTER) for client in (first, second)]
        until(lambda: all(len(reader.rows("/v1/stores/counts/rows")) == 10 for reader in readers))
        places = first.ask("/v1/stores/counts").json()["partitions"]
        until(lambda: len({place["active"] for place in first.ask("/v1/stores/counts").json()["partitions"]}) == 2)
        until(lambda: all(len(reader.rows("/v1/stores/counts/rows")) == 10 for reader in readers))
        assert len(places) == 4


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        (READERS, 0o644, "chmod 600"), ("[a", 0o600, "no list of readers"), ("a = 1", 0o600, "no list of readers"),
        ('[a]\ntoken = "short"\nstores = []', 0o600, "at least 16 characters"),
        ('[a]\ntoken = "long-enough-as-it-is"', 0o600, "no list of readers"),
        ('[a]\ntoken = "long-enough-as-it-is"\nstores = []\nstore = []', 0o600, "no list of readers"),
        (READERS + f'[last]\ntoken = "{NAMER}"\nstores = []', 0o600, "the same token"),
        ('[a]\ntoken = "the-token-of-the-server"\nstores = []', 0o600, "one of its own"),
    ],
)  # fmt: skip
def test_a_file_of_readers_that_is_not_as_it_should_be_is_refused(
    world: World, tmp_path: Path, text: str, mode: int, why: str
) -> None:
    file = readers_file(tmp_path, text, mode)
    streams = KafkaStreams(every_kind(), {**world.settings, "server.readers.file": file})
    with pytest.raises(ConfigError, match=why):
        application(streams, token="the-token-of-the-server")


def test_a_file_of_readers_that_is_not_there_is_refused(world: World, tmp_path: Path) -> None:
    streams = KafkaStreams(every_kind(), {**world.settings, "server.readers.file": tmp_path / "nowhere.toml"})
    with pytest.raises(ConfigError, match="no file"):
        application(streams, token="the-token-of-the-server")
