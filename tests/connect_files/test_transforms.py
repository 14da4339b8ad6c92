"""Transforms of a connect file change records as the operators that they stand for."""

from pathlib import Path
from typing import Any

import pytest

from kstreams.app import load_app
from kstreams.errors import ConfigError, ProcessingError
from kstreams.testing import TopologyTestDriver
from tests.connect_files.files import DICTS, SINK, TOPIC, TRADES, transformed, values, written

A = {"symbol": "A", "price": 1.5, "size": 2_000}
B = {"symbol": "B", "price": 2.5, "size": 10}
C = {"symbol": "C", "price": 3.0, "size": None}

CASES = {
    "filter": ("{ filter = \"size >= 1000 and symbol != 'X'\" }", [A]),
    "filter of a null field": ('{ filter = "size is None" }', [C]),
    "filter by a list": ("{ filter = \"symbol in ['B', 'C']\" }", [B, C]),
    "rename": (
        '{ rename = { price = "unit_price" } }',
        [
            {"symbol": "A", "unit_price": 1.5, "size": 2_000},
            {"symbol": "B", "unit_price": 2.5, "size": 10},
            {"symbol": "C", "unit_price": 3.0, "size": None},
        ],
    ),
    "rename to the name of another field that is renamed": (
        '{ rename = { price = "size", size = "price" } }',
        [{"symbol": row["symbol"], "size": row["price"], "price": row["size"]} for row in (A, B, C)],
    ),
    "select": ('{ select = ["symbol"] }', [{"symbol": "A"}, {"symbol": "B"}, {"symbol": "C"}]),
    "drop": ('{ drop = ["price", "size"] }', [{"symbol": "A"}, {"symbol": "B"}, {"symbol": "C"}]),
    "set a new field and an old one": (
        '{ set = { total = "price * size", symbol = "symbol.str.lower()" } }',
        [
            {"symbol": "a", "price": 1.5, "size": 2_000, "total": 3_000.0},
            {"symbol": "b", "price": 2.5, "size": 10, "total": 25.0},
            {"symbol": "c", "price": 3.0, "size": None, "total": None},
        ],
    ),
    "set from the record": (
        '{ set = { at = "ks.timestamp", place = "ks.key + \'!\'" } }, { select = ["at", "place"] }',
        [{"at": 3_600_000, "place": f"{name}!"} for name in "ABC"],
    ),
    "set by a choice": (
        "{ set = { kind = \"'large' if size > 100 else 'small'\" } }, { select = [\"kind\"] }",
        [{"kind": "large"}, {"kind": "small"}, {"kind": "small"}],
    ),
    "cast of a number": (
        '{ cast = { size = "float" } }, { select = ["size"] }',
        [{"size": 2_000.0}, {"size": 10.0}, {"size": None}],
    ),
    "cast to a text and back": (
        '{ cast = { price = "str" } }, { set = { price = "price + \'0\'" } }, { cast = { price = "float" } }',
        [{**A, "price": 1.5}, {**B, "price": 2.5}, {**C, "price": 3.0}],
    ),
    "mask": (
        '{ mask = ["symbol", "size"] }',
        [{"symbol": "", "price": price, "size": 0} for price in (1.5, 2.5, 3.0)],
    ),
    "mask by a text": (
        '{ mask = { symbol = "***" } }, { select = ["symbol"] }',
        [{"symbol": "***"}] * 3,
    ),
    "each transform sees the result of the one before": (
        '{ rename = { size = "count" } }, { filter = "count > 100" }, { set = { count = "count + 1" } }',
        [{"symbol": "A", "price": 1.5, "count": 2_001}],
    ),
}


@pytest.mark.parametrize("source", [TRADES, TOPIC], ids=["columns", "records"])
@pytest.mark.parametrize("name", CASES)
def test_a_transform_of_typed_values(tmp_path: Path, source: str, name: str) -> None:
    transforms, expected = CASES[name]
    assert values(tmp_path, source, transforms, [A, B, C]) == expected


@pytest.mark.parametrize("name", [name for name in CASES if name != "mask"])
def test_a_transform_of_dicts_whose_fields_are_not_declared(tmp_path: Path, name: str) -> None:
    transforms, expected = CASES[name]
    assert values(tmp_path, DICTS, transforms, [A, B, C]) == expected


def test_dicts_retain_fields_that_no_transform_names(tmp_path: Path) -> None:
    rows = [{**A, "note": [1, {"x": "y"}]}]
    assert values(tmp_path, DICTS, '{ rename = { price = "p" } }, { drop = ["size"] }', rows) == [
        {"symbol": "A", "p": 1.5, "note": [1, {"x": "y"}]}
    ]


@pytest.mark.parametrize("source", [TOPIC, DICTS], ids=["typed", "dicts"])
def test_a_null_value_deletes_also_after_transforms(tmp_path: Path, source: str) -> None:
    transforms = (
        '{ rename = { price = "p" } }, { cast = { size = "str" } }, { set = { q = "p + 1" } }, { drop = ["p"] }'
    )
    assert values(tmp_path, source, transforms, [("A", A), ("A", None)]) == [
        {"symbol": "A", "size": "2000", "q": 2.5},
        None,
    ]


def test_a_filter_drops_null_values_unless_it_names_them(tmp_path: Path) -> None:
    rows = [("A", A), ("A", None)]
    assert values(tmp_path, TOPIC, '{ filter = "size > 100" }', rows) == [A]
    assert values(tmp_path, TOPIC, '{ filter = "ks.value is None or size > 100" }', rows) == [A, None]


def test_the_key_is_a_field_an_expression_or_several_fields(tmp_path: Path) -> None:
    assert transformed(tmp_path, TOPIC, '{ key = "price" }', [A])[0][0] == b"\x3f\xf8" + bytes(6)  # 1.5 as a double
    assert transformed(tmp_path, TOPIC, "{ key = \"symbol + '-x'\" }", [A])[0][0] == b"A-x"
    assert transformed(tmp_path, TOPIC, '{ key = ["symbol", "size"] }', [A])[0][0] == b'{"symbol":"A","size":2000}'
    assert transformed(tmp_path, DICTS, '{ key = ["symbol"] }', [A])[0][0] == b'{"symbol":"A"}'


def test_lines_of_text_become_rows_by_set(tmp_path: Path) -> None:
    text = '[sources.trades]\ntype = "text"\nlocation = "a.txt"\n'
    file = written(tmp_path, text, SINK, 'transforms = [{ set = { line = "ks.value", n = "ks.value.str.len()" } }]')
    app = load_app(file)
    with TopologyTestDriver(app.topology, app.config) as driver:
        driver.create_input_topic("trades-feed", key=bytes, value=str).pipe_input(None, "hello")
        assert driver.create_output_topic("out", key=bytes, value=dict).read_value() == {"line": "hello", "n": 5}


def test_the_types_of_values_follow_the_transforms(tmp_path: Path) -> None:
    transforms = '{ cast = { size = "float" } }, { set = { large = "size > 10", day = "ks.timestamp.cast(datetime)" } }'
    app = load_app(written(tmp_path, TRADES, SQL, f"transforms = [{transforms}, {{ drop = ['price'] }}]"))
    [node] = [node for node in app.topology.nodes.values() if node.name == "table"]
    fields = {name: str(kind) for name, kind in node.value.type.__annotations__.items()}  # type: ignore[union-attr]
    assert fields == {
        "symbol": "<class 'str'>",
        "size": "float | None",
        "large": "bool | None",
        "day": "datetime.datetime | None",
    }


SQL = '\n[sinks.table]\nfrom = "trades"\ntype = "sql"\nurl = "sqlite:///a.db"\ntable = "t"\n'


def test_a_value_that_cannot_be_cast_is_an_error_of_its_record(tmp_path: Path) -> None:
    with pytest.raises(ProcessingError, match=r"out-1-cast.*'one'"):
        values(tmp_path, DICTS, '{ cast = { size = "int" } }', [{"symbol": "A", "size": "one"}])


class TestUnwrap:
    """Debezium's envelope becomes the row after the change, as Kafka Connect's ExtractNewRecordState makes it."""

    SOURCE = TOPIC.replace('"str"\nvalue', '"str"\nformat = "debezium"\nvalue')

    def rows(self, tmp_path: Path, transforms: str, events: list[Any]) -> list[Any]:
        app = load_app(written(tmp_path, self.SOURCE, SINK, f"transforms = [{transforms}]"))
        with TopologyTestDriver(app.topology, app.config) as driver:
            topic = driver.create_input_topic("all-trades", key=bytes, value=dict)
            for event in events:
                topic.pipe_input(b'"A"', event)
            return driver.create_output_topic("out", key=bytes, value=dict).read_values()

    def event(self, op: str, before: Any, after: Any, lsn: int) -> dict[str, Any]:
        return {"op": op, "before": before, "after": after, "source": {"lsn": lsn}, "ts_ms": 0}

    def test_changes_are_rows_and_deletions(self, tmp_path: Path) -> None:
        large = {**A, "size": 3_000}
        events = [
            self.event("c", None, A, 1),
            self.event("u", A, large, 2),
            self.event("u", A, large, 2),  # a copy that the connector has written again after a crash
            self.event("d", large, None, 3),
            None,
        ]
        assert self.rows(tmp_path, '{ unwrap = "debezium" }', events) == [A, large, None]

    def test_a_stream_of_changes_can_be_filtered_first(self, tmp_path: Path) -> None:
        transforms = '{ filter = "operation != \'create\'" }, { unwrap = "debezium" }, { select = ["size"] }'
        events = [self.event("c", None, A, 1), self.event("u", None, B, 2), self.event("d", B, None, 3)]
        assert self.rows(tmp_path, transforms, events) == [{"size": 10}, None]

    def test_a_column_that_the_change_does_not_report_is_an_error(self, tmp_path: Path) -> None:
        event = self.event("u", None, {**A, "symbol": "__debezium_unavailable_value"}, 2)
        with pytest.raises(ProcessingError, match="does not report the columns symbol"):
            self.rows(tmp_path, '{ filter = "operation is not None" }, { unwrap = "debezium" }', [event])

    def test_only_changes_are_unwrapped(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="only changes are unwrapped"):
            values(tmp_path, TOPIC, '{ unwrap = "debezium" }', [])


class TestRoutes:
    """A sink of type "topic" chooses the topic of a record by a field."""

    def topics(self, tmp_path: Path, sink: str, names: list[str]) -> dict[str, list[str]]:
        sink = f'[sinks.out]\nfrom = "trades"\ntype = "topic"\n{sink}'
        app = load_app(written(tmp_path, TOPIC, sink))
        with TopologyTestDriver(app.topology, app.config) as driver:
            topic = driver.create_input_topic("all-trades", key=str, value=dict)
            for row in (A, B, C):
                topic.pipe_input(row["symbol"], row)
            read = {name: driver.create_output_topic(name, key=bytes, value=dict).read_values() for name in names}
            return {name: [row["symbol"] for row in rows] for name, rows in read.items()}

    def test_a_field_in_the_name(self, tmp_path: Path) -> None:
        assert self.topics(tmp_path, 'topic = "t-{symbol}-x"', ["t-A-x", "t-B-x"]) == {"t-A-x": ["A"], "t-B-x": ["B"]}

    def test_a_list_of_values_and_a_topic_for_the_others(self, tmp_path: Path) -> None:
        sink = 'topic = "t-{symbol}"\nvalues = ["A", "B"]\nother = "t-other"'
        assert self.topics(tmp_path, sink, ["t-A", "t-B", "t-other"]) == {"t-A": ["A"], "t-B": ["B"], "t-other": ["C"]}


def test_a_source_with_transforms_and_a_topic_fills_it_with_the_result(tmp_path: Path) -> None:
    source = f'{TRADES}topic = "large"\ntransforms = [{{ filter = "size > 100" }}]\n'
    app = load_app(written(tmp_path, source, SINK))
    with TopologyTestDriver(app.topology, app.config) as driver:
        topic = driver.create_input_topic("trades-feed", key=str, value=dict)
        for row in (A, B):
            topic.pipe_input(row["symbol"], row)
        assert driver.create_output_topic("large", key=bytes, value=dict).read_values() == [A]
        assert driver.create_output_topic("out", key=bytes, value=dict).read_values() == [A]


def test_a_sink_writes_the_form_of_kafka_connect(tmp_path: Path) -> None:
    app = load_app(written(tmp_path, TRADES, SINK, 'format = "connect-json"\ntransforms = [{ select = ["size"] }]'))
    with TopologyTestDriver(app.topology, app.config) as driver:
        driver.create_input_topic("trades-feed", key=str, value=dict).pipe_input("A", A)
        value = driver.create_output_topic("out", key=bytes, value=dict).read_value()
    assert value["payload"] == {"size": 2_000}
    assert value["schema"]["fields"] == [{"field": "size", "type": "int64", "optional": True}]
