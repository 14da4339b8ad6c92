"""`kstreams produce --csv`, and times as people write them."""

from __future__ import annotations

from typing import Any

import pytest

WEATHER = """station,time,wind,gusts,zip,note,windy
EWR,2013-01-01T06:00:00Z,12,15.5,07114,"first, quoted",true
JFK,2013-01-01 07:00,,7,11430,,FALSE
"""
TYPES = "columns: station str, time str, wind int, gusts float, zip str, note str, windy bool\n"


@pytest.fixture
def weather(kstreams):
    kstreams.ok("topics", "create", "weather")
    return kstreams


def rows(kstreams, *options: str) -> list[dict[str, Any]]:
    return kstreams.ok("consume", "weather", "--from-beginning", "--until-end", "--json", *options).json_lines()


def test_rows_are_objects_with_keys_times_and_types(weather):
    options = ("--csv", "--key-column", "station", "--timestamp-column", "time")
    assert (
        weather.ok("produce", "weather", *options, stdin="\ufeff" + WEATHER).err
        == TYPES + "wrote 2 records to weather\n"
    )
    first, second = rows(weather)
    assert (first["key"], first["timestamp"]) == ("EWR", 1357020000000)
    assert (second["key"], second["timestamp"]) == ("JFK", 1357023600000)
    fields = {"wind": 12, "gusts": 15.5, "zip": "07114", "note": "first, quoted", "windy": True}
    assert first["value"] == {"station": "EWR", "time": "2013-01-01T06:00:00Z", **fields}
    assert (second["value"]["wind"], second["value"]["note"], second["value"]["windy"]) == (None, "", False)
    assert "json" in weather.ok("topics", "describe", "weather").out


def test_an_application_reads_them_as_its_own_type(weather):
    app = """
import msgspec
import kstreams as ks

class Weather(msgspec.Struct):
    station: str
    wind: int | None

topology = ks.StreamsBuilder()
readings = topology.stream("weather", key=str, value=Weather)
readings.filter(ks.col("wind") > 10).map_values(ks.col("station"), value=str).to("windy")
"""
    (weather.folder / "app.py").write_text(app)
    weather.ok("produce", "weather", "--csv", "--key-column", "station", stdin=WEATHER)
    weather.ok("run", "app.py", "--once")
    read = ("consume", "windy", "--from-beginning", "--until-end", "--json")
    assert [row["value"] for row in weather.ok(*read).json_lines()] == ["EWR"]


def test_one_column_may_be_the_value(weather):
    options = ("--csv", "--value-column", "wind", "--value-type", "int", "--delimiter", "tab")
    weather.ok("produce", "weather", *options, stdin="station\twind\nEWR\t7\n")
    assert [row["value"] for row in rows(weather)] == [7]


def test_a_type_is_that_of_the_first_rows_and_a_later_misfit_is_told(weather):
    many = "id,zip\n" + "".join(f"{number},{10_000 + number}\n" for number in range(1_500))
    refused = weather("produce", "weather", "--csv", stdin=many + "1500,N1 9GU\n")
    assert refused.status == 1
    assert "line 1502 of the input was not written, nor what follows it: zip is 'N1 9GU', and no int" in refused.err
    assert "--column zip=str" in refused.err
    assert len(rows(weather)) == 1_500
    assert weather.ok("produce", "weather", "--csv", "--column", "zip=str", stdin=many + "1500,N1 9GU\n")
    assert rows(weather)[-1]["value"] == {"id": 1500, "zip": "N1 9GU"}


def test_files_are_read_in_turn_and_must_have_one_header(weather):
    for name, text in {"a.csv": "x\n1\n", "b.csv": "x\n2\n", "c.csv": "y\n3\n"}.items():
        (weather.folder / name).write_text(text)
    weather.ok("produce", "weather", "--csv", "--file", "a.csv", "--file", "b.csv")
    assert [row["value"]["x"] for row in rows(weather)] == [1, 2]
    refused = weather("produce", "weather", "--csv", "--file", "a.csv", "--file", "c.csv")
    assert "the files differ in their headers: x and y" in refused.err


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("a,b\n1,2\n3\n", (), "line 3 of the input was not written, nor what follows it: it has 1 cells"),
        ('a,b\n1,"2\n3\n', (), "line 3 of the input was not written"),
        ("a,b\n1,r\xe9\n", (), "it is not UTF-8 text"),
        ("a,b\nx,soon\n", ("--timestamp-column", "b"), "line 2 of the input was not written, nor what follows it: its"),
        ("a,b\nx,\n", ("--timestamp-column", "b"), "its timestamp '' is no time: write it as 2026-11-25T12:00:00Z"),
        ("a;b\n1;2\n", (), "name the character between columns, as --delimiter ';'"),
        ("", (), "the file is empty: its first line must name the columns"),
        ("a,a\n1,2\n", (), "names a column twice"),
        ("a,b\n1,2\n", ("--key-column", "c"), "there is no column 'c'; the header has: a, b"),
        ("a,b\n1,2\n", ("--column", "c=int"), "there is no column 'c'; the header has: a, b"),
        ("a,b\n1,2\n", ("--column", "a=number"), "'number' is no type of a column: use one of int, float, bool, str"),
    ],
)
def test_a_bad_row_or_header_is_told(weather, text: str, options: tuple[str, ...], said: str):
    refused = weather("produce", "weather", "--csv", *options, stdin=text.encode("latin-1"))
    assert refused.status == 1
    assert said in " ".join(refused.err.split())
    assert "please report" not in refused.err


@pytest.mark.parametrize(
    "options",
    [("--csv", "--json"), ("--csv", "--key", "k"), ("--key-column", "a"), ("--csv", "--delimiter", "ab")],
)
def test_options_that_do_not_fit_are_told(weather, options: tuple[str, ...]):
    assert weather("produce", "weather", *options, stdin="a\n1\n").status == 2


def test_json_takes_iso_times(weather):
    times = ['"2026-11-25T12:00:00Z"', '"2026-11-25T13:00:00.250+01:00"', "1700000000000"]
    lines = "".join(f'{{"value": 1, "timestamp": {time}}}\n' for time in times)
    weather.ok("produce", "weather", "--json", stdin=lines)
    assert [row["timestamp"] for row in rows(weather)] == [1795608000000, 1795608000250, 1700000000000]
    refused = weather("produce", "weather", "--json", stdin='{"value": 1, "timestamp": "tomorrow"}\n')
    assert "line 1 of the input was not written" in refused.err
    assert "its timestamp 'tomorrow' is no time" in refused.err
