"""`schema_findings`: whether a registry would take the schemas that a topology writes with. Nothing is registered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kstreams.processor.topology.topology import Topology
from kstreams.serdes.base import Serde
from kstreams.serdes.schemas import SchemaSerde


class SchemaFinding(NamedTuple):
    """What becomes of one schema; `fits` says whether records can be written with it."""

    fits: bool
    text: str


def schema_findings(topology: Topology) -> Iterator[SchemaFinding]:
    """What a registry says of the schemas of each sink, in the order of sub-topologies.

    Parameters
    ----------
    topology : Topology
        Bound: its serdes know their topics and the registry.

    Raises
    ------
    RegistryError
        When the registry does not answer.
    """
    for sink in (sink for part in topology.sub_topologies for sink in part.sinks if isinstance(sink.topic, str)):
        for side, serde in (("keys", sink.key), ("values", sink.value)):
            for schema_serde in _within(serde):
                yield from _findings(schema_serde, f"the {side} of {sink.topic}")


def _within(serde: Serde[Any] | None) -> Iterator[SchemaSerde[Any]]:
    """The serdes with schemas that a serde is, or holds: a windowed key holds one of keys."""
    if isinstance(serde, SchemaSerde):
        yield serde
    elif serde is not None and serde.asks_registry:
        for part in vars(serde).values():
            if isinstance(part, Serde):
                yield from _within(part)


def _findings(serde: SchemaSerde[Any], records: str) -> Iterator[SchemaFinding]:
    outlook = serde.outlook()
    for reason in outlook.reasons:
        yield SchemaFinding(False, f"{records} cannot be written with {outlook.subject}: {reason}")
    if outlook.is_new and not outlook.reasons:
        yield SchemaFinding(True, f"{records} get a new version of {outlook.subject}")
