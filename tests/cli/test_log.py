"""`kstreams log dump`, `verify`, `compact` and `clean`."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def lines(kstreams):
    """A topic with two frames."""
    kstreams.ok("topics", "create", "lines")
    kstreams.ok("produce", "lines", "--json", stdin='{"key":"a","value":"one","timestamp":5}\n')
    kstreams.ok("produce", "lines", "--json", stdin='{"key":"b","value":"two","timestamp":7}\n')
    return kstreams


def flip_a_bit(file: Path, position: int) -> None:
    raw = bytearray(file.read_bytes())
    raw[position] ^= 0x10
    file.write_bytes(raw)


def test_dump_shows_frames_with_their_place(lines):
    first, second = lines.ok("log", "dump", "lines", "--json").json_lines()
    assert (first["topic"], first["partition"], first["base_offset"], first["count"]) == ("lines", 0, 0, 1)
    assert (second["base_offset"], second["max_timestamp"]) == (1, 7)
    assert first["position"] == 0 < second["position"]
    assert Path(first["file"]).is_file()
    assert "records" not in first


def test_dump_shows_records_when_asked(lines):
    frames = lines.ok("log", "dump", "--json", "--records").json_lines()
    assert [(row["key"], row["value"]) for frame in frames for row in frame["records"]] == [("a", "one"), ("b", "two")]


def test_dump_of_an_unknown_topic_is_an_error(lines):
    outcome = lines("log", "dump", "words")
    assert outcome.status == 1
    assert "'words'" in outcome.err


def test_a_sound_log_verifies(lines):
    outcome = lines.ok("log", "verify")
    assert outcome.out == ""
    assert "sound: 1 partition" in outcome.err


def test_a_flipped_bit_is_found_and_reading_says_where(lines):
    first, second = lines.ok("log", "dump", "--json").json_lines()
    flip_a_bit(Path(first["file"]), second["position"] - 8)

    verified = lines("log", "verify", "--json")
    assert verified.status == 1
    (damage,) = verified.json_lines()
    assert damage["file"] == first["file"]
    assert damage["position"] == first["position"]
    assert damage["offset"] == 0

    read = lines("consume", "lines", "--from-beginning", "--until-end")
    assert read.status == 1
    assert first["file"] in read.err
    assert "Traceback" not in read.err


def produce(kstreams, topic, *values):
    for value in values:
        kstreams.ok("produce", topic, "--json", stdin=f'{{"key":"a","value":"{value}","timestamp":5}}\n')


def size(kstreams, topic):
    return sum(frame["count"] for frame in kstreams.ok("log", "dump", topic, "--json").json_lines())


def test_compact_leaves_the_last_record_of_each_key_and_says_what_it_freed(lines):
    lines.ok("topics", "create", "table", "--config", "cleanup.policy=compact")
    produce(lines, "table", 1, 2, 3)
    outcome = lines.ok("log", "compact", "--json")
    (freed,) = outcome.json_lines()
    assert (freed["topic"], freed["segments"]) == ("table", -1)  # the complete one and a new one
    assert freed["bytes"] > 500
    assert f"freed {freed['bytes']:,} bytes in 1 topic" in outcome.err
    assert size(lines, "table") == 1
    read = lines.ok("consume", "table", "--from-beginning", "--until-end", "--json").json_lines()
    assert [(row["offset"], row["value"]) for row in read] == [(2, "3")]
    assert lines.ok("log", "compact", "table", "--json").json_lines()[0]["bytes"] == 0


def test_compact_refuses_by_name_what_is_not_compacted(lines):
    for topic, reason in (("lines", "cleanup.policy"), ("line", "'lines'")):
        outcome = lines("log", "compact", topic)
        assert outcome.status == 1
        assert reason in outcome.err


def test_clean_applies_retention_where_nothing_is_appended_any_more(lines):
    lines.ok("topics", "create", "old", "--config", "retention.ms=1000")
    produce(lines, "old", 1, 2)
    kept, freed = lines.ok("log", "clean", "lines", "old", "--json").json_lines()
    assert (kept["topic"], kept["bytes"], freed["topic"]) == ("lines", 0, "old")
    assert freed["bytes"] > 500
    assert (size(lines, "lines"), size(lines, "old")) == (2, 0)
    assert {row["topic"] for row in lines.ok("log", "clean", "--json").json_lines()} == {"lines", "old"}
    assert lines.ok("log", "verify").out == ""
