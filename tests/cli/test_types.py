"""What the records of a topic are: noted by those who write, shown by `consume`, taken by `produce`."""

from __future__ import annotations

import pytest

COUNTS = """
import kstreams as ks

topology = ks.StreamsBuilder()
words = topology.stream("words", key=str, value=str)
grouped = words.group_by_key()
grouped.count("counts").to_stream().to("counts-by-word")
grouped.windowed_by(ks.TimeWindows(size=60_000)).count("by-minute").to_stream().to("counts-by-minute")
grouped.windowed_by(ks.SessionWindows(gap=60_000)).count("by-session").to_stream().to("sessions")
words.map_values(len, value=float).to("lengths")
words.map_values(lambda word: {"word": word}, value=dict[str, str]).to("objects")
words.group_by(lambda key, value: value, key=str).count("by-value")
"""
MINUTE = {"start_ms": 60_000, "end_ms": 120_000}


@pytest.fixture
def counted(kstreams):
    """An application that has run over two words."""
    (kstreams.folder / "counting.py").write_text(COUNTS)
    kstreams.ok("topics", "create", "words")
    lines = '{"key":"a","value":"one","timestamp":61000}\n{"key":"a","value":"three","timestamp":62000}\n'
    kstreams.ok("produce", "words", "--json", stdin=lines)
    kstreams.ok("run", "counting.py", "--until-end")
    return kstreams


def last(kstreams, topic: str, *options: str) -> tuple[object, object]:
    row = kstreams.ok("consume", topic, "--from-beginning", "--until-end", "--json", *options).json_lines()[-1]
    return row["key"], row["value"]


def types(kstreams, topic: str) -> tuple[str | None, str | None]:
    row = kstreams.ok("topics", "describe", topic, "--json").json_lines()[0]
    return row["key_type"], row["value_type"]


def test_consume_shows_what_an_application_wrote_as_what_it_is(counted):
    assert last(counted, "counts-by-word") == ("a", 2)
    assert last(counted, "lengths") == ("a", 5.0)
    assert last(counted, "objects") == ("a", {"word": "three"})
    assert last(counted, "counts-by-minute") == ({"key": "a", "window": MINUTE}, 2)
    session = {"start_ms": 61_000, "end_ms": 62_000}
    assert last(counted, "sessions")[0] == {"key": "a", "window": session}


def test_internal_topics_are_shown_as_what_they_hold(counted):
    assert last(counted, "counting-counts-changelog") == ("a", 2)
    assert last(counted, "counting-by-minute-changelog") == ({"key": "a", "window": MINUTE}, 2)
    key, _ = last(counted, "counting-by-session-changelog")
    assert key["key"] == "a"
    assert types(counted, "counting-by-value-repartition") == ("str", "str")


def test_a_flag_wins_over_what_the_topic_says(counted):
    assert last(counted, "counts-by-word", "--value-type", "int") == ("a", 2)
    assert last(counted, "counts-by-word", "--value-type", "hex") == ("a", "0000000000000002")


def test_a_windowed_key_in_a_line_names_its_window(counted):
    line = counted.ok("consume", "counts-by-minute", "--from-beginning", "--until-end").out.splitlines()[-1]
    assert line.split("\t")[2:] == ["a@1970-01-01T00:01:00.000Z/1970-01-01T00:02:00.000Z", "2"]


def test_what_consume_prints_of_windowed_keys_can_be_produced_again(counted):
    shown = counted.ok("consume", "counts-by-minute", "--from-beginning", "--until-end", "--json").out
    key, value = types(counted, "counts-by-minute")
    counted.ok("topics", "create", "copy", "--key-type", key, "--value-type", value)
    counted.ok("produce", "copy", "--json", stdin=shown)
    again = counted.ok("consume", "copy", "--from-beginning", "--until-end", "--json").out
    assert again == shown.replace("counts-by-minute", "copy")


def test_topics_describe_shows_the_types(counted):
    assert types(counted, "counts-by-minute") == ("windowed(str, 60000)", "int")
    assert types(counted, "words") == (None, None)
    assert "\tstr\tint\t" in counted.ok("topics", "describe", "counts-by-word").out


def test_a_topic_that_was_made_before_gets_its_types_when_the_application_starts(kstreams):
    (kstreams.folder / "counting.py").write_text(COUNTS)
    for topic in ("words", "lengths"):
        kstreams.ok("topics", "create", topic)
    kstreams.ok("run", "counting.py", "--once")
    assert types(kstreams, "lengths") == ("str", "float")


def test_produce_writes_the_types_that_the_topic_was_made_with(kstreams):
    kstreams.ok("topics", "create", "numbers", "--value-type", "int")
    kstreams.ok("produce", "numbers", stdin="5\n")
    assert last(kstreams, "numbers") == (None, 5)
    assert last(kstreams, "numbers", "--value-type", "hex") == (None, "0000000000000005")
    refused = kstreams("produce", "numbers", stdin="five\n")
    assert refused.status == 1
    assert "'five' cannot be read as int" in refused.err


def test_produce_notes_the_type_it_is_told_of_a_topic_without_records(kstreams):
    kstreams.ok("topics", "create", "numbers")
    kstreams.ok("produce", "numbers", "--value-type", "float", stdin="1.5\n")
    assert last(kstreams, "numbers") == (None, 1.5)
    kstreams.ok("produce", "numbers", "--value-type", "text", stdin="text\n")
    assert types(kstreams, "numbers") == (None, "float")


def test_a_record_of_another_type_is_guessed_and_told_of_once(kstreams):
    kstreams.ok("topics", "create", "numbers", "--value-type", "int")
    kstreams.ok("produce", "numbers", stdin="5\n")
    kstreams.ok("produce", "numbers", "--value-type", "text", stdin="a\nb\n")
    read = kstreams.ok("consume", "numbers", "--from-beginning", "--until-end", "--json")
    assert [row["value"] for row in read.json_lines()] == [5, "a", "b"]
    assert read.err.count("numbers-0@1 is no int") == 1
    assert len(read.err.splitlines()) == 1


def test_a_topic_that_two_writers_fill_with_different_types_is_mixed_and_both_are_told(kstreams, caplog):
    kstreams.ok("topics", "create", "words")
    kstreams.ok("topics", "create", "lengths", "--value-type", "int")
    kstreams.ok("produce", "lengths", stdin="5\n")
    (kstreams.folder / "counting.py").write_text(COUNTS)
    kstreams.ok("run", "counting.py", "--once")
    assert types(kstreams, "lengths") == ("str", "mixed")
    assert "the values of lengths were int so far and are now written as float" in caplog.text
    read = kstreams.ok("consume", "lengths", "--from-beginning", "--until-end")
    assert "several types" in read.err


@pytest.mark.parametrize("name", ["integer", "windowed(str)", "windowed(str, 5", "int)", "", "str str"])
def test_a_type_that_does_not_exist_is_asked_wrongly(kstreams, name):
    refused = kstreams("topics", "create", "numbers", "--value-type", name)
    assert refused.status == 2
    assert "datetime" in refused.err
    assert kstreams("topics", "create", "numbers", "-c", f"kstreams.value.type={name}").status == 1


@pytest.mark.parametrize(
    ("kind", "text", "shown"),
    [
        ("bool", "true", True),
        ("datetime", "2013-01-01T00:00:00Z", "2013-01-01T00:00:00Z"),
        ("uuid", "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000001"),
        ("json", '{"a": 1}', {"a": 1}),
        ("bytes", "AAH/", {"base64": "AAH/"}),
        ("float", "nan", "NaN"),
    ],
)
def test_every_type_is_written_and_shown(kstreams, kind, text, shown):
    kstreams.ok("topics", "create", "things", "--value-type", kind)
    kstreams.ok("produce", "things", stdin=f"{text}\n")
    assert last(kstreams, "things") == (None, shown)
    again = kstreams.ok("consume", "things", "--from-beginning", "--until-end", "--json").out
    kstreams.ok("produce", "things", "--json", stdin=again)
    assert last(kstreams, "things") == (None, shown)
