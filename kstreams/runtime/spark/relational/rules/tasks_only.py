"""Operators without a form in Spark's columns: why, and what is not exact when they run in tasks."""

from __future__ import annotations

from kstreams.dsl import graph as g
from kstreams.dsl.graph.cogroups import Cogroup, WindowedCogroup
from kstreams.dsl.graph.table_joins import ForeignKeyJoin, TableJoin
from kstreams.dsl.graph.tables import TableTransformValues
from kstreams.dsl.operator import SparkForm

LATE = (
    "the watermark moves between batches and for all partitions together, so a record that comes too late may still "
    "be {done}, and one of a partition that gets its records later may not; what is dropped there is not counted"
)
"""Of the final results of windows, with `done` for what happens to a record."""

ORDER = (
    "what several partitions write is sorted by the records' own times, not by the stream times of tasks, so that "
    "other records may be late behind it"
)
"""Of what stands in a repartition topic."""

UNCOUNTED = "records that have no key, or of which a function needs a value that is not there, are dropped uncounted"
"""Of operators that have no use for them."""

CHANGE_STREAM = "a change stream with tombstones has no form in Spark"

OUT_OF_ORDER = "beside a repartition topic, a record out of order may come after later ones of the other topic"
"""In tasks: a step takes all topics up to one time, but a repartitioned record may be older than that."""


LIVES = "wall-clock punctuators fire with the steps, and a processor's attributes live for one step"
LOADED = "it is read to the end of its topic before each step, not as records come"
ROWS_WITHIN = f"{OUT_OF_ORDER}: results in between may differ, not the last"

EFFECT = SparkForm(reason="its function is called for its effect")
HEADERS = SparkForm(reason="headers are changed by tasks")
RECORDS = SparkForm(reason="a processor takes records one by one", task_difference=LIVES)
UPDATES = SparkForm(reason="a processor takes updates one by one", task_difference=LIVES)
BEFORE_ALL = SparkForm(reason="it is loaded before everything else", task_difference=LOADED)
CHANGES = SparkForm(reason=CHANGE_STREAM)
ONE_STATE = SparkForm(reason="several streams write one state, each by a Python function", task_difference=OUT_OF_ORDER)

FORMS: dict[type[g.Node], SparkForm] = {
    g.MapBatch: SparkForm(reason="batches are cut by tasks"),
    g.MapHeaders: HEADERS,
    g.WithHeaders: HEADERS,
    g.Peek: EFFECT,
    g.Foreach: EFFECT,
    g.Print: SparkForm(reason="it prints record by record"),
    g.Process: RECORDS,
    g.ProcessValues: RECORDS,
    TableTransformValues: UPDATES,
    g.GlobalStore: BEFORE_ALL,
    g.GlobalTableSource: BEFORE_ALL,
    g.TableAggregate: CHANGES,
    g.TableGroupBy: CHANGES,
    g.TableRepartition: CHANGES,
    TableJoin: SparkForm(reason=CHANGE_STREAM, task_difference=ROWS_WITHIN),
    ForeignKeyJoin: CHANGES,
    Cogroup: ONE_STATE,
    WindowedCogroup: ONE_STATE,
}
