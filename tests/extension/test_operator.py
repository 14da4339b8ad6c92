"""An operator of a user's own, on every engine: nothing of kstreams is touched to add it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.dsl.analysis.facts import flow_types
from kstreams.dsl.analysis.types import TypeOf, Types
from kstreams.dsl.graph import Node
from kstreams.dsl.graph.signatures import called_with
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import OperatorDescriptor, SparkForm, register
from kstreams.errors import TopologyError, UnsupportedError
from kstreams.processor.context.operator_context import ClosureOperator
from kstreams.runtime.native.engine import explain as explain_natively
from kstreams.runtime.spark import engine as spark_engine
from kstreams.runtime.spark.code.program import program_of as spark_program_of
from kstreams.runtime.spark.code.rows import Stream
from kstreams.runtime.spark.code.writing import CodeWriter
from tests.dsl.driven import run
from tests.native.world import World
from tests.spark.running import Application, Row

# --- the operator -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Pairwise(Node):
    """Each item of an iterable value together with the one before it."""

    changes_values: ClassVar[bool] = True

    combine: Annotated[Callable[[Any, Any], Any], called_with("earlier", "later")]


@dataclass(frozen=True)
class PairwiseOperator(ClosureOperator):
    """Forwards what `combine` makes of each two neighbours."""

    combine: Callable[[Any, Any], Any]

    def bind(self, context: Any, forward: Callable[[Any, Any, int], None]) -> Callable[[Any, Iterable[Any], int], None]:
        combine = self.combine

        def process(key: Any, value: Iterable[Any], timestamp: int) -> None:
            for earlier, later in pairwise(value):
                forward(key, combine(earlier, later), timestamp)

        return process


def types_of_pairwise(node: Pairwise, parents: tuple[Types, ...]) -> Types:
    """Keys stay; values have the type of the items."""
    (item, *_) = get_args(parents[0].value.python) or (None,)
    return Types(parents[0].key, TypeOf(item, node))


def add_pairwise(node: Pairwise, build: Lowering) -> str:
    return build.processor(node, PairwiseOperator(node.combine))


register(OperatorDescriptor(node=Pairwise, types=types_of_pairwise, topology=add_pairwise))


# --- the same with a form in programs of PySpark, which is optional ---------------------------------------------------


class Rises(Pairwise):
    """Pairwise differences of numbers."""


def written_rises(node: Rises, build: CodeWriter) -> Stream:
    stream = build.parent(node)
    neighbours = 'F.arrays_zip(F.slice("value", 2, F.size("value")).alias("later"), F.col("value").alias("earlier"))'
    rises = f'F.transform({neighbours}, lambda pair: pair["later"] - pair["earlier"])'
    rows = stream.then(node, f'.withColumn("value", F.explode({rises}))', '.where(F.col("value").isNotNull())')
    return replace(rows, value=build.serde(node, "value"), is_checked=False)


register(
    OperatorDescriptor(node=Rises, types=types_of_pairwise, topology=add_pairwise, spark=SparkForm(write=written_rises))
)


# --- in use -----------------------------------------------------------------------------------------------------------


def rises(builder: ks.StreamsBuilder) -> ks.KStream[str, int]:
    levels = builder.stream("in", key=str, value=list[int])
    return levels.apply(Pairwise(combine=lambda earlier, later: later - earlier), name="rises")


def topology() -> ks.Topology:
    builder = ks.StreamsBuilder()
    rises(builder).to("out")
    return builder.build()


def test_on_the_test_driver() -> None:
    builder = ks.StreamsBuilder()
    rises(builder).filter(lambda key, rise: rise > 0).to("out")
    rows = [("a", [1, 4, 2, 3], 7), ("b", [5], 8), ("a", [], 9)]
    assert run(builder, rows, value_in=list[int], value=int) == [("a", 3, 7), ("a", 1, 7)]


def test_types_are_inferred() -> None:
    types = flow_types(topology().graph)
    assert (types["rises"].key.python, types["rises"].value.python) == (str, int)


def test_it_repartitions_like_other_operators_that_keep_keys() -> None:
    builder = ks.StreamsBuilder()
    rises(builder).group_by_key().count()
    assert builder.build().repartition_topics == ()


def test_describe_and_explain_show_it() -> None:
    assert "    Processor: rises (stores: [])\n      --> KSTREAM-SINK" in str(topology().describe())
    config = Config.of(application_id="app")
    (natively,) = (row for row in explain_natively(topology(), config) if row.operator == "rises")
    (on_spark,) = (row for row in spark_engine.explain(topology(), config) if row.operator == "rises")
    assert natively.path == "records"
    assert (on_spark.path, on_spark.why) == ("task", "it has no form there")
    assert "test_operator.py" in (on_spark.declared_at or "")


def test_names_are_made_of_the_type_of_the_node() -> None:
    stream = ks.StreamsBuilder().stream("in", key=str, value=list[int])
    assert "KSTREAM-PAIRWISE-0000000001" in repr(stream.apply(Pairwise(combine=max)))


def test_functions_are_checked_when_the_operator_is_declared() -> None:
    stream = ks.StreamsBuilder().stream("in", key=str, value=list[int])
    with pytest.raises(TopologyError, match=r"calls its combine as combine\(earlier, later\), but the one"):
        stream.apply(Pairwise(combine=lambda pair: pair))


def test_a_node_that_was_not_registered_is_refused_with_what_to_do() -> None:
    class Unknown(Node):
        pass

    stream = ks.StreamsBuilder().stream("in", key=str, value=list[int])
    with pytest.raises(UnsupportedError, match=r"Unknown, which is no registered operator: call .*register"):
        stream.apply(Unknown())


def test_natively_with_a_restart_between_two_runs(tmp_path: Path) -> None:
    world = World(tmp_path)
    for topic in ("in", "out"):
        world.create(topic)
    with world.log() as log, log.producer() as producer:
        producer.send("in", b"a", b"[1,4]", timestamp=1)
    world.run(topology())
    with world.log() as log, log.producer() as producer:
        producer.send("in", b"a", b"[4,2,9]", timestamp=2)
    world.run(topology())
    assert world.rows("out", value=int) == [("a", 3, 1), ("a", -2, 2), ("a", 7, 2)]


@pytest.mark.spark
def test_on_spark_with_a_restart_between_two_runs(spark: Any, tmp_path: Path) -> None:
    app = Application(spark, tmp_path, topology(), {"in": (str, list[int]), "out": (str, int)})
    app.create("in", "out", partitions=1).write([Row("in", "a", [1, 4], 1)]).run()
    app.write([Row("in", "a", [4, 2, 9], 2)]).run()
    assert app.rows("out") == [("a", 3, 1), ("a", -2, 2), ("a", 7, 2)]


def risen(levels: Any) -> Any:
    return levels.apply(Rises(combine=lambda earlier, later: later - earlier), name="rises")


@pytest.mark.spark
def test_in_a_dataframe_if_it_has_a_form_there(spark: Any) -> None:
    frame = spark.createDataFrame([("a", [1, 4, 2], 1), ("b", [5], 2)], "key string, levels array<bigint>, at bigint")
    rows = ks.StreamsBuilder().from_dataframe(frame, key="key", timestamp="at")
    rises = risen(rows.map_values(ks.col("levels"), value=list[int]))
    assert [(row.key, row.value) for row in rises.to_dataframe(spark).collect()] == [("a", 3), ("a", -2)]


def test_in_the_text_of_a_program_if_it_has_a_form_there() -> None:
    builder = ks.StreamsBuilder()
    risen(builder.stream("in", key=str, value=list[int])).to("out")
    program = spark_program_of(builder.build(), Config.of(application_id="app"), lambda topic: 1)
    assert "test_operator.py:" in program
    assert "F.arrays_zip(" in program
