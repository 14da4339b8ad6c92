"""`Placing`: which partition of its topic each row goes to: by its key; without one, to the partition it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.log.partitioning import partitions_of
from kstreams.runtime.spark.exchange.rows import whole
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.relational.typed_graph import TypedGraph
from kstreams.serdes import SessionWindowedSerde, TimeWindowedSerde, serde_of

_WINDOW_BYTES: dict[type, int] = {TimeWindowedSerde: 8, SessionWindowedSerde: 16}
"""How many bytes stand behind the key inside a windowed one."""


class Placing(NamedTuple):
    """The partitions of one topic.

    Parameters
    ----------
    partitions : int
        Of the topic.
    window_bytes : int
        At the end of each key: windows of one key stay together, only the key inside decides.
    """

    partitions: int
    window_bytes: int

    def of(self, keys: pa.Array, own: pa.Array) -> pa.Array:
        """The partition of each row, by its key or by the partition that it came from."""
        inner = pc.binary_slice(keys, 0, -self.window_bytes) if self.window_bytes else keys
        chosen = partitions_of(inner, self.partitions)
        return pa.array(np.where(chosen < 0, own.to_numpy() % self.partitions, chosen), pa.int32())


def places_of(nodes: Iterable[Node], typed: TypedGraph, program: Program) -> dict[str, Placing]:
    """How the rows are placed that some nodes write, by real name of the topic."""
    places = {}
    for node in nodes:
        if isinstance(node, g.To | g.Repartition):
            topic = program.topic_names.get(str(node.topic), str(node.topic))
            count = program.partitions.get(topic, program.default_partitions)
            places[topic] = Placing(count, _window_bytes(typed, node))
    return places


def placed(rows: pa.Table, places: Mapping[str, Placing]) -> pa.Table:
    """The same rows, each with its partition instead of the one it came from; those of other topics stay."""
    topics = pc.unique(rows["topic"]).to_pylist()
    return pa.concat_tables(_placed(rows, topic, places.get(topic), len(topics)) for topic in topics)


def _placed(rows: pa.Table, topic: str, placing: Placing | None, several: int) -> pa.Table:
    mine = rows if several == 1 else rows.filter(pc.equal(rows["topic"], topic))
    if placing is None:
        return mine
    chosen = placing.of(whole(mine["key"]), whole(mine["partition"]))
    return mine.set_column(mine.schema.get_field_index("partition"), "partition", chosen)


def _window_bytes(typed: TypedGraph, node: Node) -> int:
    return _WINDOW_BYTES.get(type(serde_of(typed.types[node.name].key.kind)), 0)
