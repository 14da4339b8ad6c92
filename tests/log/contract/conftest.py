"""The homes that must pass the contract, each empty for every test; what not every home does is asked for by a mark."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack

import pytest

from kstreams.log import Log, home_at, open_log
from tests.log.contract.members import Started, fill
from tests.log.contract.reading import commits_are_awaited
from tests.support.kafka_topics import delete_everything

HOMES = [
    "embedded",
    pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.slow]),
]


@pytest.fixture(params=HOMES)
def log(request: pytest.FixtureRequest) -> Iterator[Log]:
    """An empty home of topics."""
    open_home: Callable[[], AbstractContextManager[Log]] = request.getfixturevalue(f"{request.param}_home")
    with open_home() as home:
        for mark in request.node.iter_markers("needs"):
            missing = set(mark.args) - home.abilities
            if missing:
                pytest.skip("; ".join(f"not offered: {each.value}" for each in sorted(missing, key=str)))
        with commits_are_awaited(home):
            yield home


@pytest.fixture
def embedded_home(tmp_path) -> Callable[[], Log]:
    return lambda: open_log(tmp_path / "log")


@pytest.fixture
def kafka_home(kafka) -> Callable[[], Log]:
    delete_everything(kafka.bootstrap_servers)
    return lambda: home_at(f"kafka:{kafka.bootstrap_servers}").open()


@pytest.fixture
def address(request: pytest.FixtureRequest, log: Log, tmp_path) -> str:
    """Where other processes find the home."""
    if request.node.callspec.params["log"] == "kafka":
        return f"kafka:{request.getfixturevalue('kafka').bootstrap_servers}"
    return f"log:{tmp_path / 'log'}"


@pytest.fixture
def started(log: Log) -> Iterator[Started]:
    """Members of a group; ten words in each of four partitions."""
    fill(log, "words")
    with ExitStack() as stack:
        yield Started(log, stack)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*abilities): what the home must be able to do")
