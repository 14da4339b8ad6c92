"""Two small topologies in which some records fail."""

from __future__ import annotations

import kstreams as ks
from tests.error_policies.engines import row

MAPPER = "KSTREAM-MAPVALUES-0000000001"
"""The operator of `numbers` that fails."""
MISTYPED = (row(b"ab"), row(b"x", timestamp=3), row(b"abc"))
"""Records for `mistyped`; the second fails."""


def numbers() -> ks.Topology:
    """Text as numbers; it fails for what is no number."""
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(int, value=int).to("out")
    return builder.build()


def mistyped() -> ks.Topology:
    """Writes "x" as its length, which is no text: a wrong type for this record."""
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    stream.map_values(lambda v: len(v) if v == "x" else v, value=str).to("out")
    return builder.build()
