"""A draw: one topology on one data set, all of it said by a seed and a number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from kstreams.errors import TopologyError
from kstreams.processor.topology.layout import Layout, lay_out
from kstreams.processor.topology.topology import Topology
from tests.columns.random_topologies import Order
from tests.spark.draws.data import KEYS, SHOPS, Times, draw_rows
from tests.spark.draws.topology import Comparable, DrawnTopology, comparable, is_uneven, is_unordered
from tests.spark.running import Row

INPUTS = {"in-0": KEYS, "in-1": KEYS, "table": KEYS, "global": [*KEYS, *SHOPS], "right": SHOPS}
"""The topics that may be read, with their keys."""

OUTPUTS = ("shared", "odd", "even", "joined", "grouped", *(f"out-{number}" for number in range(10)))
TYPES: dict[str, tuple[Any, Any]] = dict.fromkeys((*INPUTS, *OUTPUTS), (str, Order))


@dataclass(frozen=True)
class Draw:
    """One topology on one data set.

    Parameters
    ----------
    name : str
        Seed and number, as the command takes them.
    made_from : str
        The seed of the topology.
    said : tuple of str
        Its steps.
    partitions : int
        Of every input topic.
    rows : tuple of Row
        The records of all topics that it reads.
    times : Times
    comparable : Comparable
    """

    name: str
    made_from: str
    said: tuple[str, ...]
    partitions: int
    rows: tuple[Row, ...]
    times: Times
    comparable: Comparable

    def topology(self, passed: Callable[[Any, Any], None] | None = None) -> Topology:
        """The topology, made anew; `passed` is called with every record of its streams."""
        return DrawnTopology(self.made_from, passed).topology()

    def random(self, what: str) -> Random:
        """Chance for one purpose: the same whenever it is asked for."""
        return Random(f"{self.name} {what}")

    def __str__(self) -> str:
        read = ", ".join(f"{sum(row.topic == topic for row in self.rows)} in {topic}" for topic in self.topics())
        return f"{' > '.join(self.said)}; {self.partitions} partitions, {read}, {self.times}"

    def topics(self) -> list[str]:
        """The topics that it reads."""
        return [topic for topic in INPUTS if any(row.topic == topic for row in self.rows)]


def draw(seed: int, number: int, most_rows: int = 140) -> Draw:
    """The draw of a number.

    Parameters
    ----------
    seed, number : int
        Say all about it.
    most_rows : int
        Of a topic.
    """
    name = f"{seed}/{number}"
    chance = Random(name)
    partitions = chance.randint(1, 5)
    made_from, said, topology, layout = _laid_out(name, partitions)
    times = Times.draw(chance, partitions)
    read = {topic for topics in layout.inputs.values() for topic in topics}
    counts = {topic: chance.randint(most_rows // 3, most_rows) for topic in INPUTS}
    rows = [
        row
        for topic in INPUTS
        if topic in read
        for row in draw_rows(chance, topic, INPUTS[topic], times, counts[topic])
    ]
    return Draw(name, made_from, said, partitions, tuple(rows), times, comparable(topology))


def _laid_out(name: str, partitions: int) -> tuple[str, tuple[str, ...], Topology, Layout]:
    """The first topology of some that fits on topics of that many partitions."""
    for attempt in range(100):
        made_from = f"{name} {attempt}"
        maker = DrawnTopology(made_from)
        topology = maker.topology()
        try:
            layout = lay_out(topology, "app", dict.fromkeys(INPUTS, partitions))
        except TopologyError:
            continue  # what is joined differs in its number of partitions
        if not is_uneven(layout) and not is_unordered(topology, layout):
            return made_from, tuple(maker.said), topology, layout
    raise AssertionError(f"{name}: no topology fits on {partitions} partitions")
