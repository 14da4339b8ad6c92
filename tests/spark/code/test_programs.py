"""`kstreams explain app.py --engine spark --code`: the application as a program of plain PySpark."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.cli.main import main
from kstreams.config import Config
from kstreams.errors import TopologyError
from kstreams.runtime.spark.code.program import program_of
from tests.spark.code import orders

PARTITIONS: Mapping[str, int] = {"orders": 2, "payments": 3}


def program(builder: ks.StreamsBuilder, **settings: Any) -> str:
    """The text of a program."""
    config = Config.of({"application.id": "app", **settings})
    return program_of(builder.build(config), config, PARTITIONS.get)


def test_a_program_imports_pyspark_and_python_alone() -> None:
    tree = ast.parse(program(orders.topology))
    imported = {
        alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    imported |= {str(node.module).split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"collections", "functools", "json", "pyspark", "sys"}


def test_a_program_has_lines_that_can_be_read() -> None:
    assert max(map(len, program(orders.topology).splitlines())) <= 120


def test_operators_are_methods_of_dataframes_with_their_lines() -> None:
    text = program(orders.topology)
    assert '.where((F.col("value.amount") > 5) & ~F.col("value.note").isNull())' in text
    assert '.groupBy(F.window("timestamp", "60000 milliseconds").alias("window"), "key")' in text
    assert "# filter(), orders.py:" in text


def test_rows_of_a_table_that_a_filter_drops_become_tombstones() -> None:
    text = program(orders.topology)
    assert '.withColumn("value", F.when(F.col("value").isNotNull() & (F.col("value") > 60), F.col("value")))' in text


def test_a_filtered_table_is_joined_with_the_rows_that_remain() -> None:
    builder = ks.StreamsBuilder()
    table = builder.table("customers", key=str, value=orders.Customer).filter(ks.col("level") > 1)
    builder.stream("orders", key=str, value=int).join(table, ks.right.col("name"), value=str).to("names")
    text = program(builder)
    filtered = text.index('F.col("value.level") > 1')
    assert filtered < text.index('.where(F.col("value").isNotNull())', filtered)


def test_lists_are_exploded() -> None:
    assert '.withColumn("value", F.explode(F.col("value.parcels")))' in program(orders.topology)


def test_an_exploded_field_has_the_item_in_place_of_the_list() -> None:
    text = program(orders.topology)
    assert '.withColumn("item", F.explode(F.col("value.parcels")))' in text
    assert 'F.col("item").alias("parcels")' in text


def test_datetimes_are_texts_of_json_that_expressions_read_as_timestamps() -> None:
    text = program(orders.topology)
    assert 'SHIPMENT = (\n    "struct<sent: string, due: string, price: string' in text
    assert '.where(F.col("value.sent").cast("timestamp") > F.to_timestamp(F.lit(' in text
    assert 'utc_text(F.date_trunc("day", F.col("value.sent").cast("timestamp"))).alias("day")' in text
    assert 'F.col("value.sent").alias("sent")' in text


def test_every_partition_has_a_watermark_where_an_operator_follows_time() -> None:
    text = program(orders.topology)
    assert 'read_by_partition({"payments": 3}, "10000 milliseconds")' in text
    assert 'read("orders")' in text


def test_results_of_a_program_go_to_the_topics_that_the_engine_writes() -> None:
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=str, value=int).filter(ks.value > 1).to("big")
    assert ', "spark-big")' in program(builder)
    assert ', "big")' in program(builder, **{"spark.kstreams.prefix": ""})


def test_what_calls_python_is_left_out_and_the_program_says_so() -> None:
    builder = ks.StreamsBuilder()
    numbers = builder.stream("orders", key=str, value=int)
    numbers.filter(ks.value > 1).to("big")
    numbers.filter(lambda record: record.value > 1, with_record=True).to("also-big")
    text = program(builder)
    assert "It leaves out what PySpark cannot say with the same results:\n- filter() at" in text
    assert "it calls a Python function" in text
    assert '"spark-big"' in text
    assert '"spark-also-big"' not in text


@pytest.mark.parametrize(
    ("declare", "reason"),
    [
        (lambda rows: rows.map_values(attrgetter("real"), value=str).to("out"), "it calls a Python function"),
        (lambda rows: rows.map_values(ks.value * 0.5, value=float).to("out"), "FloatSerde has no form"),
        (lambda rows: rows.filter(ks.partition == 0).to("out"), "read from the record that a task processes"),
        (lambda rows: rows.to(lambda key, value, record: "out"), "a function chooses the topic"),
        (lambda rows: rows.group_by_key().aggregate(last=ks.value.last()).to_stream().to("out"), "order of records"),
        (
            lambda rows: rows.group_by_key().windowed_by(ks.SessionWindows(gap=5)).count().to_stream().to("out"),
            "Spark emits sessions when they are closed",
        ),
        (
            lambda rows: rows.group_by_key().count().to_stream().group_by_key().count().to_stream().to("out"),
            "Spark keeps one state in a query",
        ),
        (
            lambda rows: rows.map_values(ks.value.cast(datetime), value=datetime).to("out"),
            "DatetimeSerde has no form",
        ),
        (
            lambda rows: rows.join(rows.to_table(), ks.value + ks.right.value, value=int).to("out"),
            "its table comes from to_table",
        ),
        (
            lambda rows: rows.deduplicate(within=5, by=lambda key, value: value, key=int).to("out"),
            "it calls a Python function",
        ),
    ],
    ids=["function", "float", "position", "topic", "last", "sessions", "two states", "datetime", "table", "duplicates"],
)
def test_a_topology_without_any_form_is_refused_with_the_reason(declare: Any, reason: str) -> None:
    builder = ks.StreamsBuilder()
    declare(builder.stream("orders", key=str, value=int))
    with pytest.raises(TopologyError, match=reason):
        program(builder)


def test_a_topic_that_is_not_there_is_named_if_its_partitions_count() -> None:
    builder = ks.StreamsBuilder()
    windows = ks.TimeWindows(size=60_000)
    builder.stream("unknown", key=str, value=int).group_by_key().windowed_by(windows).count().to_stream().to("out")
    with pytest.raises(
        TopologyError, match="each partition of 'unknown' needs a watermark, but there is no such topic"
    ):
        program(builder)


def test_a_field_that_an_expression_leaves_out_is_null_in_its_place() -> None:
    builder = ks.StreamsBuilder()
    lines = builder.stream("orders", key=str, value=orders.Line)
    lines.map_values(ks.struct(city=ks.col("item")), value=orders.Address).to("addresses")
    text = program(builder)
    assert 'F.struct(F.col("value.item").alias("city"), F.lit(None).cast("string").alias("street"))' in text


def test_a_reason_that_concerns_several_topics_is_given_once() -> None:
    builder = ks.StreamsBuilder()
    texts = builder.stream("orders", key=str, value=int).map_values(attrgetter("real"), value=str)
    texts.to("one")
    texts.to("two")
    with pytest.raises(TopologyError) as refused:
        program(builder)
    assert str(refused.value).count("it calls a Python function") == 1


def test_topics_of_connectors_are_left_to_kstreams(tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    rows = builder.stream(ks.sources.text(tmp_path / "*.txt"))
    rows.to("lines")
    builder.stream("orders", key=str, value=int).to(ks.sinks.files(tmp_path / "numbers", format="json"))
    with pytest.raises(TopologyError, match=r"filled by kstreams.*a sink of kstreams takes its records"):
        program(builder)


def test_windows_with_different_graces_have_watermarks_of_their_own() -> None:
    builder = ks.StreamsBuilder()
    grouped = builder.stream("orders", key=str, value=int).group_by_key()
    for grace in (5_000, 7_000):
        grouped.windowed_by(ks.TimeWindows(size=60_000, grace=grace)).count().to_stream().to(f"after-{grace}")
    text = program(builder)
    assert '"5000 milliseconds"' in text
    assert '"7000 milliseconds"' in text


def test_a_setting_that_only_tasks_follow_is_named() -> None:
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=str, value=int).to("out")
    with pytest.raises(TopologyError, match=r"processing\.exception\.handler is set"):
        program(builder, **{"processing.exception.handler": "continue"})


SKIPPING = {"deserialization.exception.handler": "continue"}


def test_a_record_that_cannot_be_decoded_ends_a_program_unless_the_handler_skips_it() -> None:
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=str, value=int, name="orders").filter(ks.value > 1).to("big")
    text = program(builder)
    assert '.where(can_read("key", text(F.col("key"))) | refusal())' in text
    assert 'required(long(F.col("value"))).alias("value")' in text
    text = program(builder, **SKIPPING)
    assert '.transform(skip_unreadable("orders", text(F.col("key")), long(F.col("value"))))' in text
    assert "refusal()" not in text


def test_what_is_skipped_moves_no_watermark() -> None:
    builder = ks.StreamsBuilder()
    numbers = builder.stream("orders", key=str, value=int, name="orders").group_by_key()
    numbers.windowed_by(ks.TimeWindows(size=60_000)).count().to_stream().to("counts")
    skipping = 'skip_unreadable("orders", text(F.col("key")), long(F.col("value")))'
    assert skipping in program(builder, **SKIPPING).partition("read_by_partition(\n")[2].partition("# windowed")[0]


def test_dead_letters_are_written_for_every_stream_once() -> None:
    builder = ks.StreamsBuilder()
    numbers = builder.stream("orders", key=str, value=int)
    numbers.filter(ks.value > 1).to("big")
    numbers.filter(ks.value < 1).to("small")
    text = program(builder, **SKIPPING, **{"errors.dead.letter.queue.topic.name": "failures"})
    assert text.count('"spark-failures"') == 1
    assert '.transform(dead_letters(text(F.col("key")), long(F.col("value"))))' in text


def test_a_table_is_not_joined_where_records_are_skipped() -> None:
    builder = ks.StreamsBuilder()
    names = builder.table("customers", key=str, value=str)
    builder.stream("orders", key=str, value=int).join(names, ks.right.value, value=str).to("names")
    with pytest.raises(TopologyError, match="leaves the row before it in a table"):
        program(builder, **SKIPPING)


def test_a_password_is_read_from_the_environment() -> None:
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=str, value=int).to("out")
    settings = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "ann"}
    text = program(builder, **settings, **{"bootstrap.servers": "one:9093", "sasl.password": "secret-of-ann"})
    assert "secret-of-ann" not in text
    assert 'os.environ["KAFKA_PASSWORD"]' in text
    assert '"kafka.security.protocol": "SASL_SSL"' in text


APP = """
import kstreams as ks
topology = ks.StreamsBuilder()
topology.stream("words", key=str, value=str).filter(ks.value.str.len() > 3).to("long-words")
"""


@pytest.fixture
def app(tmp_path: Path) -> str:
    """The file of an application."""
    path = tmp_path / "app.py"
    path.write_text(APP)
    return str(path)


def test_the_command_prints_the_program(app: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", app, "--engine", "spark", "--code"]) == 0
    text = capsys.readouterr().out
    assert '.where(F.length("value").cast("bigint") > 3)' in text
    ast.parse(text)


@pytest.mark.parametrize("options", [["--code"], ["--code", "--engine", "spark", "--json"]])
def test_the_command_refuses_other_engines_and_json(
    app: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", app, *options]) != 0
    assert "--code prints a program of PySpark: give --engine spark with it" in capsys.readouterr().err
