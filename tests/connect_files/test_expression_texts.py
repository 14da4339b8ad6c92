"""Texts in the syntax of Python become expressions. Nothing else is possible in them."""

from pathlib import Path

import msgspec
import pytest

from kstreams.connect.expression_texts import expression_of
from kstreams.connect.tables import Place
from kstreams.errors import ConfigError
from kstreams.expressions import Schema

PLACE = Place("trades.toml:7", ("sinks.large", "transform 1", "filter"))


class Trade(msgspec.Struct):
    symbol: str
    price: float
    size: int | None


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("size >= 1_000", "(ks.col('size') >= 1000)"),
        ("1 < size <= 5", "((1 < ks.col('size')) & (ks.col('size') <= 5))"),
        ("size > 1 and not price < 2.5 or symbol == 'A'", "(((ks.col('size') > 1) & (~(ks.col('price') < 2.5))) | "
         "(ks.col('symbol') == 'A'))"),
        ("(size > 1) & ~(price < 2)", "((ks.col('size') > 1) & (~(ks.col('price') < 2)))"),
        ("symbol in ['A', 'B']", "ks.col('symbol').is_in(('A', 'B'))"),
        ("symbol not in ('A',)", "(~ks.col('symbol').is_in(('A',)))"),
        ("size is None", "ks.col('size').is_null()"),
        ("size is not None", "(~ks.col('size').is_null())"),
        ("-price * -2 // 3 % 4", "((((-ks.col('price')) * -2) // 3) % 4)"),
        ("price if size > 1 else 0.0", "ks.when((ks.col('size') > 1)).then(ks.col('price')).otherwise(0.0)"),
        ("price if size > 1 else None", "ks.when((ks.col('size') > 1)).then(ks.col('price'))"),
        ("size.fill_null(0).between(1, price)", "((ks.col('size').fill_null(0) >= 1) & "
         "(ks.col('size').fill_null(0) <= ks.col('price')))"),
        ("symbol.str.upper().str.starts_with('A')", "ks.col('symbol').str.upper().str.starts_with('A')"),
        ("symbol.str.extract('^([A-Z]+)')", "ks.col('symbol').str.extract('^([A-Z]+)', 1)"),
        ("symbol.str.contains('^A', literal=False)", "ks.col('symbol').str.contains('^A', literal=False)"),
        ("symbol.str.split('.').list.get(-1)", "ks.col('symbol').str.split('.').list.get(-1)"),
        ("symbol.str.split('.').list.contains('X')", "ks.col('symbol').str.split('.').list.contains('X')"),
        ("ks.timestamp.cast(datetime).dt.offset_by('1s').dt.epoch('s')",
         "ks.timestamp.cast(datetime).dt.offset_by(datetime.timedelta(seconds=1)).dt.epoch('s')"),
        ("symbol.str.slice(0, length=2)", "ks.col('symbol').str.slice(0, 2)"),
        ("ks.timestamp.cast(datetime).dt.hour()", "ks.timestamp.cast(datetime).dt.hour()"),
        ("ks.timestamp.cast(datetime).dt.truncate('1h')",
         "ks.timestamp.cast(datetime).dt.truncate(datetime.timedelta(seconds=3600))"),
        ("ks.header('tries', type=int) > 3", "(ks.header('tries', type=int) > 3)"),
        ("ks.key == ks.coalesce(ks.header('k'), symbol)", "(ks.key == ks.header('k').fill_null(ks.col('symbol')))"),
        ("ks.topic == 'a' and\nks.partition + ks.offset > 0", "((ks.topic == 'a') & ((ks.partition + ks.offset) > 0))"),
    ],
)  # fmt: skip
def test_a_text_is_the_expression_that_python_would_make(text: str, expression: str) -> None:
    assert repr(expression_of(text, PLACE, Schema(str, Trade))) == expression


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("siz > 3", "there is no field siz; did you mean size? There are: symbol, price, size, at character 1"),
        ("price > 1 and siz > 3", "There are: symbol, price, size, at character 15"),
        ("symbol == 'Zürich' and siz > 3", "at character 24"),
        ("size.flor()", "there is no method .flor(); did you mean .floor()?, at character 1"),
        ("symbol.str.uper()", "there is no method .str.uper(); did you mean .str.upper()?"),
        ("price +", "invalid syntax, at character 8 of 'price +'; allowed are: fields, numbers"),
        ("size == None", "write `is None`"),
        ("size is 3", "`is` compares with None only: write =="),
        ("'A' in symbol", "within a text, write symbol.str.contains('A')"),
        ("symbol + 1", "needs numbers or two texts, not str and int"),
        ("symbol > 1", "cannot compare these, not str and int"),
        ("symbol.address", "write symbol.struct.field('address')"),
        ("size.fill_null()", "missing 1 required positional argument"),
        ("symbol.str.contains(3)", ".str.contains() takes texts in quotes"),
        ("symbol.str.slice(1, -2)", "must not be negative"),
        ("ks.keys == 1", "there is no ks.keys, at character 1 of 'ks.keys == 1'; allowed are: ks.key, ks.value"),
        ("99999999999999999999 > size", "integers have 64 bits"),
    ],
)  # fmt: skip
def test_an_error_names_the_position_and_what_to_write(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        expression_of(text, PLACE, Schema(str, Trade))
    assert str(raised.value).startswith("trades.toml:7: sinks.large: transform 1: filter: ")
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch owned')",
        "open('owned', 'w')",
        "size.__class__",
        "size.__class__.__bases__[0].__subclasses__()",
        "().__class__",
        "[x for x in (1, 2)]",
        "lambda: 1",
        "f'{size}'",
        "size := 3",
        "(size := 3)",
        "size[0]",
        "{'a': 1}",
        "size.walk()",
        "size.operation",
        "symbol.str.of",
        "ks.struct(a=1)",
        "ks.__dict__",
        "ks.col.__globals__",
        "size.cast(object)",
        "await size",
        "size @ 2",
        "size ** 99999999",
        "eval('1')",
        "print",
        "...",
    ],
)
def test_nothing_else_is_allowed(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError):
        expression_of(text, PLACE, Schema(str, Trade))
    assert list(tmp_path.iterdir()) == []


def test_fields_of_dicts_are_not_known_before_there_are_records() -> None:
    assert repr(expression_of("anything > 3", PLACE, Schema(str, dict))) == "(ks.col('anything') > 3)"


def test_values_without_fields_are_named_as_such() -> None:
    with pytest.raises(ConfigError, match=r"values are str, without fields: write ks\.value"):
        expression_of("line == 'x'", PLACE, Schema(str, str))
