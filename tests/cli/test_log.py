"""`kstreams log dump` and `kstreams log verify`."""

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
