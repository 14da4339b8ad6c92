"""What is not exactly as on the native engine, in words, by node type and path. A test shows every entry."""

from __future__ import annotations

from kstreams.dsl import graph as g
from kstreams.dsl.graph.table_joins import TableJoin
from kstreams.dsl.graph.tables import TableTransformValues

_LATE = (
    "the watermark moves between batches and for all partitions together, so a record that comes too late may still "
    "be {done}, and one of a partition that lags may not; what is dropped there is not counted"
)
RELATIONAL: dict[type, str] = {
    g.WindowedAggregate: _LATE.format(done="counted"),
    g.StreamJoin: _LATE.format(done="joined") + "; a record at the epoch itself is dropped",
}
"""Of the final results of a node on the relational path."""

_LIVES = "wall-clock punctuators fire with the steps, and a processor's attributes live for one step"
_LOADED = "it is read to the end of its topic before each step, not as records come"
_ACROSS = "records of stream and table are ordered by time within a step, not across steps"
TASKS: dict[type, str] = {
    g.Process: _LIVES,
    g.ProcessValues: _LIVES,
    TableTransformValues: _LIVES,
    g.GlobalTableSource: _LOADED,
    g.GlobalStore: _LOADED,
    g.StreamTableJoin: _ACROSS,
    g.LeftStreamTableJoin: _ACROSS,
    TableJoin: "the rows of both tables are ordered by time within a step: results in between may differ, not the last",
}
"""Of a node in tasks, which answer as the native engine but for where steps are cut."""
