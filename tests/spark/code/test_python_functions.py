"""Python functions in programs: their text, what they read, and their results."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams import app as application
from kstreams.config import Config
from kstreams.errors import KStreamsError, TopologyError
from kstreams.runtime.spark import engine
from kstreams.runtime.spark.code.program import program_of
from tests.spark.code import python_functions
from tests.spark.code.plain_pyspark import run_program
from tests.spark.code.python_functions import OUTPUTS, Order
from tests.spark.running import Application, Row
from tests.support.kafka_topics import delete_everything

TYPES = {"orders": (str, Order)} | dict.fromkeys(OUTPUTS, (bytes, bytes))


def program(builder: ks.StreamsBuilder, **settings: Any) -> str:
    config = Config.of({"application.id": "app", **settings})
    return program_of(builder.build(config), config, {"orders": 2}.get)


def test_a_function_gets_just_the_fields_that_it_reads() -> None:
    text = program(python_functions.topology)
    assert "truth_of((lambda key, order: order is not None and order.amount > LIMIT))" in text
    assert 'fields("value", "customer", "amount", "price", "note")' in text
    assert "(lambda key, order: order.customer),\n" in text


def test_a_program_has_what_its_functions_read_and_nothing_of_the_module() -> None:
    text = program(python_functions.topology)
    for part in [
        "LIMIT = 5",
        "RATES = {'ann': 1.5}",
        "import math\n",
        "from math import sqrt as root",
        "Cost = namedtuple('Cost', ['item', 'cost', 'note'], defaults=[None])",
        "def rate(name):",
    ]:
        assert text.count(part) == 1, part
    assert "import kstreams" not in text
    ast.parse(text)


class Sent(msgspec.Struct):
    customer: str
    at: datetime
    tags: list[str]


def by_decorator(value: Sent) -> str:
    return value.customer


decorated = functools.cache(by_decorator)
factor = object()


def closed(limit: list[object]) -> Callable[..., bool]:
    return lambda key, value: value.customer in limit


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda key, value: bool(str(value)), "takes the whole value"),
        (lambda key, value: value.at.year > 2_000, "reads at of the value, which is no plain field"),
        (lambda key, value: "a" in value.tags, "reads tags of the value, which is no plain field"),
        (lambda key, value: value.customer == factor, "reads factor, a object"),
        (closed([object()]), "reads limit, a list"),
        (lambda *row: bool(row), "takes its arguments as a tuple"),
        (
            functools.partial(lambda limit, key, value: True, 5),
            "it calls a Python function that has no source: functools.partial",
        ),
        (eval("lambda key, value: value.customer"), "it calls a Python function that has no source"),
    ],
    ids=["whole", "time", "list", "object", "closure", "tuple", "partial", "eval"],
)
def test_a_function_that_a_program_cannot_have_is_left_to_tasks(function: Any, reason: str) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=str, value=Sent).filter(function).to("out")
    with pytest.raises(TopologyError, match=reason):
        program(builder)


def test_a_constant_of_an_enclosing_function_is_a_constant_of_the_program() -> None:
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=str, value=Sent).filter(closed(["ann"])).to("out")
    assert "limit = ['ann']" in program(builder)


def test_results_that_are_not_plain_are_left_to_tasks() -> None:
    builder = ks.StreamsBuilder()
    orders = builder.stream("orders", key=str, value=Order)
    orders.map_values(lambda order: Sent(order.customer, datetime(2020, 1, 1), []), value=Sent).to("out")
    with pytest.raises(TopologyError, match="returns Sent, which has fields that are not plain"):
        program(builder)


def test_auto_takes_tasks_for_python_functions_with_the_reason() -> None:
    config = Config.of({"application.id": "app", "spark.kstreams.accept": "decoding,headers,late,order,table,updates"})
    decisions: list[Any] = engine.explain(python_functions.topology.build(config), config)
    assert {row.path for row in decisions} == {"task"}
    assert any("Spark would pass each row to its Python function and back" in row.why for row in decisions)


def rows(count: int) -> list[Row]:
    names = ["ann", "bo", "crème", ""]
    notes = [None, "", "x"]
    orders = [
        Row("orders", f"user-{n % 5}", Order(names[n % 4], n % 9, n / 8, notes[n % 3]), n * 1_000)
        for n in range(1, count)
    ]
    return [*orders, Row("orders", "user-1", None, 2_000), Row("orders", None, orders[0].value, 3_000)]


@pytest.mark.spark
@pytest.mark.slow
def test_functions_in_queries_have_the_results_of_the_native_engine(spark: Any, tmp_path: Path) -> None:
    settings = {"spark.kstreams.path": "relational", "spark.kstreams.max.records": 40}
    app = Application(spark, tmp_path, python_functions.topology, TYPES, **settings).create("orders")
    decisions: list[Any] = engine.explain(app.topology, Config.of(app.settings))
    assert {row.path for row in decisions} == {"relational"}
    app.write(rows(100)).run()
    app.run_natively()
    for topic in OUTPUTS:
        assert Counter(app.rows(topic)) == Counter(app.rows(topic, "")), topic
        assert app.rows(topic), topic


@pytest.mark.spark
@pytest.mark.slow
def test_a_function_that_fails_ends_the_query_with_its_error(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=str, value=Order).map_values(lambda order: 1 // order.amount, value=int).to("out")
    app = Application(spark, tmp_path, builder, TYPES, **{"spark.kstreams.path": "relational"}).create("orders")
    app.write([Row("orders", "a", Order("ann", 0, 1.0), 1)])
    with pytest.raises(KStreamsError, match="ZeroDivisionError"):
        app.run()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "kind", "returned"),
    [(lambda order: order.amount / 2, int, "float"), (lambda order: order.amount > 1, int, "bool")],
)
def test_a_result_of_another_class_ends_the_query(
    spark: Any, tmp_path: Path, function: Any, kind: type, returned: str
) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=str, value=Order).map_values(function, value=kind).to("out")
    app = Application(spark, tmp_path, builder, TYPES, **{"spark.kstreams.path": "relational"}).create("orders")
    app.write([Row("orders", "a", Order("ann", 1, 1.0), 1)])
    with pytest.raises(KStreamsError, match=f"returned {returned} where {kind.__name__} is declared"):
        app.run()


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_program_with_functions_runs_under_plain_pyspark(kafka: Any, tmp_path: Path) -> None:
    delete_everything(kafka.bootstrap_servers)
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "spark.kstreams.checkpoint": str(tmp_path / "checkpoint")}
    app = Application(None, tmp_path, python_functions.topology, TYPES, **settings)
    app.create("orders", *OUTPUTS, *(f"spark-{topic}" for topic in OUTPUTS)).write(rows(100))
    app.run_natively(until_end=False)
    path = tmp_path / "program.py"
    path.write_text(application.code(application.load_app(python_functions.__file__, settings)))
    finished = run_program(path)
    assert finished.returncode == 0, finished.stderr[-5_000:]
    for topic in OUTPUTS:
        found, expected = (
            Counter((key, value) for key, value, _ in app.rows(topic, prefix)) for prefix in ("spark-", "")
        )
        assert not found - expected, topic
        assert found == expected or topic == "counts", topic
