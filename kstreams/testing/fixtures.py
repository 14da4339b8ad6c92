"""The pytest fixture `topology_test_driver`, which is available wherever kstreams is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kstreams.testing import TopologyTestDriver

DriverFactory = Callable[..., "TopologyTestDriver"]


@pytest.fixture
def topology_test_driver() -> Iterator[DriverFactory]:
    """Yield a function that creates a `TopologyTestDriver`; all drivers are closed when the test ends.

    It takes the topology as in an application file (a StreamsBuilder, a Topology, or a function that returns one), the
    configuration, and the driver's other arguments.

    Examples
    --------
    def test_shout(topology_test_driver):
        driver = topology_test_driver(app.topology)
        words = driver.create_input_topic("words", key=str, value=str)
        words.pipe_input("a", "hello")
        assert driver.create_output_topic("shouts", key=str, value=str).read_value() == "HELLO"
    """
    from kstreams.testing import TopologyTestDriver

    drivers: list[TopologyTestDriver] = []

    def make(topology: Any, config: Mapping[str, Any] | None = None, **options: Any) -> TopologyTestDriver:
        drivers.append(TopologyTestDriver(topology, config, **options))
        return drivers[-1]

    yield make
    for driver in drivers:
        driver.close()
