"""Whatever a connect file has that nobody reads, or that does not fit, is an error with its place and a hint."""

from pathlib import Path

import pytest

from kstreams.app import load_app
from kstreams.connect.connect_file import load_connect_file
from kstreams.errors import ConfigError, KStreamsError
from tests.connect_files.files import SINK, TRADES, written

SQL = """
[sinks.large]
from = "trades"
type = "sql"
url = "sqlite:///a.db"
table = "large"
"""

CASES = {
    "no file of this name": (None, "there is no file trades.toml: name the file"),
    "not TOML": (["[sources"], "trades.toml is not TOML: "),
    "no sources": (["[application]\nid = 'a'\n"], "trades.toml: there is no table [sources.NAME]"),
    "an unknown table": (["[source.trades]\n"], "there is no key 'source'; did you mean 'sources'?"),
    "an unknown setting of the application": (
        ["[application]\nnum.stream.thread = 2\n", TRADES, SQL],
        "trades.toml: application: unknown configuration key num.stream.thread; the nearest is num.stream.threads",
    ),
    "no type": (["[sources.trades]\nlocation = 'a'\n", SQL], "trades.toml:1: sources.trades: type is missing"),
    "an unknown source": (
        [TRADES.replace('"csv"', '"cvs"'), SQL],
        "trades.toml:2: sources.trades: there is no source 'cvs'; did you mean 'csv'?",
    ),
    "an unknown sink": ([TRADES, SQL.replace('"sql"', '"sqll"')], "sinks.large: there is no sink 'sqll'; did you mean"),
    "an unknown setting of a source": (
        [TRADES, 'delimeter = ";"\n', SQL],
        "sources.trades: there is no setting 'delimeter'; did you mean 'delimiter'? There are: location, value, key",
    ),
    "an unknown setting of a sink of a database": (
        [TRADES, SQL.replace('"sql"', '"postgres"'), "delete_enable = true\n"],
        "sinks.large: there is no setting 'delete_enable'; did you mean 'delete_enabled'?",
    ),
    "a missing setting": ([TRADES, SQL.replace('table = "large"', "")], "sinks.large: table is missing"),
    "a setting of another type": ([TRADES, "tasks = 'four'\n", SQL], "sources.trades: tasks: this cannot be 'four': "),
    "a setting that is none of the possible values": (
        [TRADES, SQL, "mode = 'upsrt'\n"],
        "sinks.large: mode: there is no value 'upsrt'; did you mean 'upsert'? There are: insert, upsert",
    ),
    "a duration without unit": (
        ["[sources.trades]\ntype = 'http'\nurl = 'http://a'\ninterval = '10'\n", SQL],
        "interval: this cannot be '10': '10' is not a duration: write a number with ms, s, m, h or d",
    ),
    "settings that do not fit together": ([TRADES, SQL, "mode = 'upsert'\n"], "sinks.large: "),
    "an unknown type": (
        [TRADES.replace('"float"', '"flaot"'), SQL],
        "sources.trades: value: price: there is no type 'flaot'; did you mean 'float'?",
    ),
    "a field that is no name": (
        [TRADES.replace("price =", '"unit price" ='), SQL],
        "value: 'unit price' is no name of a field",
    ),
    "a module that does not exist": (
        [TRADES.replace('{ symbol = "str", price = "float", size = "int | None" }', '"shopp:Trade"'), SQL],
        "value: shopp is no module beside the file, and not installed",
    ),
    "a sink of an unknown source": (
        [TRADES, SQL.replace('"trades"', '"trade"')],
        "trades.toml:8: sinks.large: there is no source 'trade'; did you mean 'trades'?",
    ),
    "a source without a sink": (
        [TRADES, TRADES.replace("[sources.trades]", "[sources.others]"), SQL],
        'sources.others: no sink reads it: write from = "others" in a sink, or topic = ... here',
    ),
    "a source and a sink of one name": (
        [TRADES, SQL.replace("large]", "trades]")],
        "a source is called trades as well",
    ),
    "an unknown transform": (
        [TRADES, SQL, "transforms = [{ fliter = 'size > 1' }]"],
        "trades.toml:8: sinks.large: transform 1: there is no transform 'fliter'; did you mean 'filter'? There are: ",
    ),
    "two transforms in one table": (
        [TRADES, SQL, "transforms = [{ filter = 'size > 1', drop = ['size'] }]"],
        "transform 1: a transform has one key, not 2: write a table in braces for each",
    ),
    "a filter by no condition": (
        [TRADES, SQL, "transforms = [{ filter = 'size > 1' }, { filter = 'size + 1' }]"],
        "sinks.large: transform 2: filter: 'size + 1' is int, not a condition",
    ),
    "an unknown field in a filter": (
        [TRADES, SQL, "transforms = [{ filter = 'sise > 1' }]"],
        "transform 1: filter: there is no field sise; did you mean size?",
    ),
    "an unknown field in a list": (
        [TRADES, SQL, "transforms = [{ drop = ['sise'] }]"],
        "transform 1: drop: there is no field 'sise'; did you mean 'size'? There are: symbol, price, size",
    ),
    "a field that a transform before has dropped": (
        [TRADES, SQL, "transforms = [{ drop = ['size'] }, { set = { a = 'size + 1' } }]"],
        "transform 2: set: a: there is no field size",
    ),
    "a new name that another field has": (
        [TRADES, SQL, "transforms = [{ rename = { price = 'size' } }]"],
        "price cannot be renamed to size, since there is a field size",
    ),
    "a mask of another type": (
        [TRADES, SQL, "transforms = [{ mask = { price = 'x' } }]"],
        "mask: price is float, which 'x' cannot replace",
    ),
    "all fields dropped": (
        [TRADES, SQL, "transforms = [{ drop = ['symbol', 'price', 'size'] }]"],
        "drop: no field remains",
    ),
    "a route by an unknown field": (
        [TRADES, SINK.replace('"out"', '"out-{region}"')],
        "sinks.out: topic: there is no field 'region'",
    ),
    "a route by a number": (
        [TRADES, SINK.replace('"out"', '"out-{size}"')],
        "sinks.out: topic: size is int: cast it to str first",
    ),
    "values of a route without a topic for others": (
        [TRADES, SINK.replace('"out"', '"out-{symbol}"'), "values = ['A']"],
        "sinks.out: other is missing",
    ),
    "a variable that is not set": (
        [TRADES, SQL.replace("a.db", "${KSTREAMS_TEST_DATABSE}")],
        "trades.toml: the environment has no variable KSTREAMS_TEST_DATABSE: did you mean ${KSTREAMS_TEST_DATABASE}?",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_error_says_where_and_what_to_do(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KSTREAMS_TEST_DATABASE", "a.db")
    parts, problem = CASES[case]
    if parts is not None:
        written(Path(), *parts)
    with pytest.raises(KStreamsError) as raised:
        load_app("trades.toml")
    assert problem in str(raised.value)


def test_values_of_variables_are_masked_in_errors(tmp_path: Path) -> None:
    sql = SQL.replace("sqlite:///a.db", "nosuch+${SCHEME}://ada:${PASSWORD}@db/shop")
    file = written(tmp_path, TRADES, sql, "auto_create = '${PASSWORD}'\n")
    with pytest.raises(ConfigError) as raised:
        load_connect_file(file, {"PASSWORD": "tiger", "SCHEME": "xyz"})
    assert "auto_create: this cannot be '****'" in str(raised.value)


def test_a_class_may_stand_in_a_module_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "connect_shop.py").write_text(
        "import msgspec\nclass Trade(msgspec.Struct):\n    symbol: str\n    price: float\n    size: int\n"
    )
    source = TRADES.replace('{ symbol = "str", price = "float", size = "int | None" }', '"connect_shop:Trade"')
    app = load_app(written(tmp_path, source, SQL, 'transforms = [{ filter = "size > 1" }]'))
    [node] = [node for node in app.topology.nodes.values() if node.name == "large"]
    assert node.value.type.__name__ == "Trade"  # type: ignore[union-attr]


def test_settings_may_be_durations_and_objects(tmp_path: Path) -> None:
    source = (
        '[sources.trades]\ntype = "http"\nurl = "http://localhost/trades"\ninterval = "1.5s"\n'
        'cursor = { type = "LastField", field = "id", parameter = "after" }\n'
    )
    app = load_app(written(tmp_path, source, SQL))
    [declared] = app.topology.connector_sources
    assert repr(declared.source) == "http('http://localhost/trades', cursor=LastField('id'))"


def test_a_file_is_an_application_with_its_own_name_and_settings(tmp_path: Path) -> None:
    app = load_app(written(tmp_path, TRADES, SQL))
    assert app.config["application.id"] == "trades"
    assert app.config["processing.guarantee"] == "exactly_once_v2"
    settings = '[application]\nid = "shop"\nnum.stream.threads = 2\nprocessing.guarantee = "at_least_once"\n'
    app = load_app(written(tmp_path, settings, TRADES, SQL), {"num.stream.threads": 3})
    assert app.config["application.id"] == "shop"
    assert app.config["processing.guarantee"] == "at_least_once"
    assert app.config["num.stream.threads"] == 3
