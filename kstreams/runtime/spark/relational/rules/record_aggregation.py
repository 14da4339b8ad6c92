"""`RecordAggregation`: an aggregator that processes record by record, with the serdes of its aggregates."""

from __future__ import annotations

from typing import NamedTuple

from kstreams.dsl import graph as g
from kstreams.dsl.rules.aggregates import Lowered, lower
from kstreams.runtime.spark.relational.keyed_state import KeyRecord
from kstreams.runtime.spark.relational.lowering import RelationalLowering
from kstreams.runtime.spark.relational.user_function import UserFunction
from kstreams.serdes import Serde


class RecordAggregation(NamedTuple):
    """An aggregator; `step` is the function that adds a record, and `result` is the serde of results."""

    lowered: Lowered
    step: UserFunction
    result: Serde

    @classmethod
    def of(cls, node: g.StreamAggregate | g.WindowedAggregate, build: RelationalLowering) -> RecordAggregation:
        """Create the aggregation of a node."""
        frame = build.parent(node)
        lowered = lower(node, build)
        step = build.function(node, lowered.aggregator.step, (frame.key, frame.value))
        return cls(lowered, step, build.serde(node, "value"))

    def initial(self) -> object:
        """Return the initial aggregate."""
        return self.lowered.aggregator.initial()

    def aggregated(self, record: KeyRecord, aggregate: object) -> object:
        """Apply a record to an aggregate."""
        time = (record.timestamp,) if self.lowered.aggregator.timed else ()
        return self.step.of_record((record.origin, record.offset), (record.key, record.value), aggregate, *time)

    def serialized_result(self, aggregate: object) -> bytes | None:
        """Serialize the result of an aggregate for the output."""
        if aggregate is None:
            return None
        result = self.lowered.aggregator.result
        return self.result.serialize(aggregate if result is None else result(aggregate))

    def serialized(self, aggregate: object) -> bytes:
        """Serialize an aggregate for the next step."""
        return self.lowered.state.serialize(aggregate)

    def deserialized(self, saved: bytes) -> object:
        """Deserialize an aggregate of an earlier step."""
        return self.lowered.state.deserialize(saved)
