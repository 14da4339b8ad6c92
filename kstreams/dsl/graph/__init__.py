"""The logical graph: what the user said, as frozen nodes that know no engine."""

from kstreams.dsl.graph.aggregates import (
    Aggregation,
    Count,
    Expressions,
    Fold,
    Grouped,
    Reduce,
    StreamAggregate,
    WindowedAggregate,
)
from kstreams.dsl.graph.joins import (
    GlobalTableJoin,
    LeftGlobalTableJoin,
    LeftStreamTableJoin,
    OuterStreamJoin,
    StreamJoin,
    StreamTableJoin,
)
from kstreams.dsl.graph.logical_graph import LogicalGraph
from kstreams.dsl.graph.node import Keys, Node, Typing, declare
from kstreams.dsl.graph.processors import Process
from kstreams.dsl.graph.sinks import Repartition, To
from kstreams.dsl.graph.sources import Consumed, GlobalTableSource, StreamSource, TableSource, TimestampExtractor
from kstreams.dsl.graph.stateless import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    Foreach,
    Function,
    Map,
    MapValues,
    Merge,
    Peek,
    Print,
    SelectKey,
    Split,
)
from kstreams.dsl.graph.suppress import Suppress
from kstreams.dsl.graph.tables import TableFilter, TableMapValues, ToStream, ToTable

__all__ = [
    "Aggregation",
    "Branch",
    "Consumed",
    "Count",
    "Expressions",
    "Filter",
    "FlatMap",
    "FlatMapValues",
    "Fold",
    "Foreach",
    "Function",
    "GlobalTableJoin",
    "GlobalTableSource",
    "Grouped",
    "Keys",
    "LeftGlobalTableJoin",
    "LeftStreamTableJoin",
    "LogicalGraph",
    "Map",
    "MapValues",
    "Merge",
    "Node",
    "OuterStreamJoin",
    "Peek",
    "Print",
    "Process",
    "Reduce",
    "Repartition",
    "SelectKey",
    "Split",
    "StreamAggregate",
    "StreamJoin",
    "StreamSource",
    "StreamTableJoin",
    "Suppress",
    "TableFilter",
    "TableMapValues",
    "TableSource",
    "TimestampExtractor",
    "To",
    "ToStream",
    "ToTable",
    "Typing",
    "WindowedAggregate",
    "declare",
]
