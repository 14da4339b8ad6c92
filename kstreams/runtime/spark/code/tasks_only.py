"""The reasons why operators run only in tasks, and how their results differ there from those of the native engine."""

from __future__ import annotations

from kstreams.dsl import graph as g
from kstreams.dsl.graph.cogroups import Cogroup, WindowedCogroup
from kstreams.dsl.graph.table_joins import ForeignKeyJoin, TableJoin
from kstreams.dsl.graph.tables import TableTransformValues
from kstreams.dsl.operator import SparkForm
from kstreams.runtime.spark.code.join_rules import OUT_OF_ORDER

_CHANGE_STREAM = "a change stream with tombstones has no form in Spark"
_ATTRIBUTES = "wall-clock punctuators fire with the steps, and a processor's attributes live for one step"

_EFFECT = SparkForm(reason="its function is called for its effect")
_HEADERS = SparkForm(reason="headers are changed by tasks")
_RECORDS = SparkForm(reason="a processor takes records one by one", task_difference=_ATTRIBUTES)
_WAITS = SparkForm(
    reason="its records wait for the wall clock, in stores of tasks",
    task_difference="the wall clock moves with the steps, and while no record arrives there is no step",
)
_RETAINED = SparkForm(
    reason="Spark retains all records of a join that has no condition on their times",
    task_difference=OUT_OF_ORDER,
)
_CHANGES = SparkForm(reason=_CHANGE_STREAM)
_ONE_STATE = SparkForm(
    reason="several streams write one state, each by a Python function", task_difference=OUT_OF_ORDER
)

FORMS: dict[type[g.Node], SparkForm] = {
    g.FlatMap: SparkForm(reason="it calls a Python function"),
    g.MapBatch: SparkForm(reason="batches are cut by tasks"),
    g.MapHeaders: _HEADERS,
    g.WithHeaders: _HEADERS,
    g.Peek: _EFFECT,
    g.Foreach: _EFFECT,
    g.Print: SparkForm(reason="it prints record by record"),
    g.Process: _RECORDS,
    g.ProcessValues: _RECORDS,
    g.ApplyChanges: _RECORDS,
    TableTransformValues: SparkForm(reason="a processor takes updates one by one", task_difference=_ATTRIBUTES),
    g.RetainedJoin: _RETAINED,
    g.OuterRetainedJoin: _RETAINED,
    g.Delay: _WAITS,
    g.Throttle: _WAITS,
    g.Schedule: _WAITS,
    g.GlobalStore: SparkForm(
        reason="it is loaded before everything else",
        task_difference="it is read to the end of its topic before each step, not as records arrive",
    ),
    g.TableAggregate: _CHANGES,
    g.TableGroupBy: _CHANGES,
    g.TableRepartition: _CHANGES,
    TableJoin: SparkForm(
        reason=_CHANGE_STREAM,
        task_difference=f"{OUT_OF_ORDER}: intermediate results may differ, final results do not",
    ),
    ForeignKeyJoin: _CHANGES,
    Cogroup: _ONE_STATE,
    WindowedCogroup: _ONE_STATE,
}
