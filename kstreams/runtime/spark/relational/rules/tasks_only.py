"""Operators that run only in tasks, with the reason, and the differences that several operators have on Spark."""

from __future__ import annotations

from kstreams.dsl import graph as g
from kstreams.dsl.graph.cogroups import Cogroup, WindowedCogroup
from kstreams.dsl.graph.table_joins import ForeignKeyJoin, TableJoin
from kstreams.dsl.graph.tables import TableTransformValues
from kstreams.dsl.operator import SparkForm

LATE = (
    "the watermark moves between batches and for all partitions together, so a late record may still be {done}, and a "
    "record of a partition that is behind the others may not; dropped records are not counted"
)
"""The difference of windows that emit final results; `done` says what happens to a record."""

ORDER = (
    "records that several partitions write to one partition are sorted by their own times, not by the stream times of "
    "tasks, so that other records may be late after them"
)
"""The difference of repartition topics."""

UNCOUNTED = "records without a key, or without a value that a function needs, are dropped and not counted"
"""The difference of operators that cannot process such records."""

CHANGE_STREAM = "a change stream with tombstones has no form in Spark"

OUT_OF_ORDER = "next to a repartition topic, a record out of order may come after later records of the other topic"
"""The difference in tasks: a step takes all topics up to one time, but a repartitioned record may be older."""

ATTRIBUTES = "wall-clock punctuators fire with the steps, and a processor's attributes live for one step"
LOADED = "it is read to the end of its topic before each step, not as records arrive"
INTERMEDIATE = f"{OUT_OF_ORDER}: intermediate results may differ, final results do not"

EFFECT = SparkForm(reason="its function is called for its effect")
HEADERS = SparkForm(reason="headers are changed by tasks")
RECORDS = SparkForm(reason="a processor takes records one by one", task_difference=ATTRIBUTES)
UPDATES = SparkForm(reason="a processor takes updates one by one", task_difference=ATTRIBUTES)
WAITS = SparkForm(
    reason="its records wait for the wall clock, in stores of tasks",
    task_difference="the wall clock moves with the steps, and while no record arrives there is no step",
)
RETAINED = SparkForm(
    reason="Spark retains all records of a join that has no condition on their times",
    task_difference=OUT_OF_ORDER,
)
BEFORE_ALL = SparkForm(reason="it is loaded before everything else", task_difference=LOADED)
CHANGES = SparkForm(reason=CHANGE_STREAM)
ONE_STATE = SparkForm(reason="several streams write one state, each by a Python function", task_difference=OUT_OF_ORDER)

BY_KEY = SparkForm(reason="a DataFrame keeps no rows by key", task_difference=OUT_OF_ORDER)
"""Aggregations and joins whose state has no end in time."""

FORMS: dict[type[g.Node], SparkForm] = {
    g.StreamAggregate: SparkForm(reason=BY_KEY.reason),
    g.StreamTableJoin: BY_KEY,
    g.LeftStreamTableJoin: BY_KEY,
    g.Deduplicate: SparkForm(reason="Spark's own form also drops repeats that come later than the given time"),
    g.To: SparkForm(reason="a DataFrame ends before topics"),
    g.MapBatch: SparkForm(reason="batches are cut by tasks"),
    g.MapHeaders: HEADERS,
    g.WithHeaders: HEADERS,
    g.Peek: EFFECT,
    g.Foreach: EFFECT,
    g.Print: SparkForm(reason="it prints record by record"),
    g.Process: RECORDS,
    g.ProcessValues: RECORDS,
    g.ApplyChanges: RECORDS,
    TableTransformValues: UPDATES,
    g.RetainedJoin: RETAINED,
    g.OuterRetainedJoin: RETAINED,
    g.Delay: WAITS,
    g.Throttle: WAITS,
    g.Schedule: WAITS,
    g.GlobalStore: BEFORE_ALL,
    g.GlobalTableSource: BEFORE_ALL,
    g.TableAggregate: CHANGES,
    g.TableGroupBy: CHANGES,
    g.TableRepartition: CHANGES,
    TableJoin: SparkForm(reason=CHANGE_STREAM, task_difference=INTERMEDIATE),
    ForeignKeyJoin: CHANGES,
    Cogroup: ONE_STATE,
    WindowedCogroup: ONE_STATE,
}
