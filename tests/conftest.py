"""Settings of all tests: what hypothesis prints, how files are shared among processes, how signals reach children."""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests.support.examples import examples

# The code of a user that the type checker reads: looking for examples in it would start Spark in every process.
collect_ignore = ["typing/user_code.py"]

# A failure prints how to repeat it; none comes from the slowness of the machine.
settings.register_profile("kstreams", deadline=None, print_blob=True, max_examples=examples(100))
settings.load_profile("kstreams")


def ignore(number: int, frame: object) -> None:
    """Do nothing with a signal."""


# Where SIGINT is ignored (`nohup make test &`), child processes would inherit that, and tests that interrupt them would
# wait for ever. A handler is not inherited: this process goes on ignoring the signal, its children do not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, ignore)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage only among what tests make: modules and collected tests stay, and are half a million objects."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)  # after `-m` has chosen
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that need Spark first, and those that take longest at both ends."""
    from tests.order import in_order

    items[:] = in_order(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share files from both ends of their order, where files are shared at all (`--dist loadfile`)."""
    if config.getvalue("dist") != "loadfile":
        return None
    from tests.order import BothEnds

    return BothEnds(config, log)


@pytest.fixture(scope="session")
def kafka() -> Iterator[Any]:
    """A broker of Apache Kafka that takes records of any time."""
    from tests.support.kafka_cluster import KafkaCluster, can_run

    if not can_run():
        pytest.skip("a broker needs Java, and Maven to fetch it")
    with KafkaCluster(settings={"log.message.timestamp.after.max.ms": 2**63 - 1}) as cluster:
        yield cluster
