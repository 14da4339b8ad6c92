"""`schema_findings`: checks whether a registry accepts the schemas that a topology writes. Registers nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kstreams.processor.topology.topology import Topology
from kstreams.serdes.base import Serde
from kstreams.serdes.schemas import SchemaSerde


class SchemaFinding(NamedTuple):
    """The finding about one schema; `fits` is True if records can be written with it."""

    fits: bool
    text: str


def schema_findings(topology: Topology) -> Iterator[SchemaFinding]:
    """Yield the findings of a registry about the schemas of each sink, in the order of sub-topologies.

    Parameters
    ----------
    topology : Topology
        A bound topology, whose serdes have their topics and the registry.

    Raises
    ------
    RegistryError
        If the registry does not answer.
    """
    for sink in (sink for part in topology.sub_topologies for sink in part.sinks if isinstance(sink.topic, str)):
        for side, serde in (("keys", sink.key), ("values", sink.value)):
            for schema_serde in _within(serde):
                yield from _findings(schema_serde, f"the {side} of {sink.topic}")


def _within(serde: Serde | None) -> Iterator[SchemaSerde]:
    """Yield the serdes with schemas that a serde is or contains: a windowed key contains a key's serde."""
    if isinstance(serde, SchemaSerde):
        yield serde
    elif serde is not None and serde.asks_registry:
        for part in vars(serde).values():
            if isinstance(part, Serde):
                yield from _within(part)


def _findings(serde: SchemaSerde, records: str) -> Iterator[SchemaFinding]:
    preview = serde.preview()
    for reason in preview.reasons:
        yield SchemaFinding(False, f"{records} cannot be written with {preview.subject}: {reason}")
    if preview.is_new and not preview.reasons:
        yield SchemaFinding(True, f"{records} get a new version of {preview.subject}")
