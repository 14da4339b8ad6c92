"""The topology of what an application calls `topology`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from kstreams.config import Config
from kstreams.log.schema_registries import ApplicationRegistry
from kstreams.processor.topology.topology import Topology


def built(topology: Any, config: Mapping[str, Any], runner: str) -> Topology:
    """The Topology of a function, of a builder under a configuration, or itself; `runner` names who asks.

    Raises
    ------
    TypeError
        When it is none of these.
    """
    built = topology() if callable(topology) else topology
    built = built.build(config) if hasattr(built, "build") else built
    if not isinstance(built, Topology):
        raise TypeError(
            f"{runner} runs a StreamsBuilder, a Topology, or a function that returns one, not a {type(built).__name__}"
        )
    return built


@contextmanager
def bound_while(topology: Topology, config: Config) -> Iterator[Topology]:
    """The topology with serdes that may ask the schema registry of a configuration, which is closed at the end."""
    with closing(ApplicationRegistry(config)) as registry:
        yield topology.bound(config, registry)
