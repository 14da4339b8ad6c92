"""`kstreams produce`: bytes, files, and input that cannot be read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = str(Path(sys.executable).with_name("kstreams"))


@pytest.fixture
def lines(kstreams):
    kstreams.ok("topics", "create", "lines")
    return kstreams


def shown(kstreams, kind: str = "auto") -> list[tuple[object, object]]:
    read = ("consume", "lines", "--from-beginning", "--until-end", "--json", "--value-type", kind)
    return [(row["key"], row["value"]) for row in kstreams.ok(*read).json_lines()]


def test_raw_lines_are_written_byte_by_byte(lines):
    lines.ok("produce", "lines", "--value-type", "raw", stdin=b"\xff\x00\xe9\nb\r\n")
    assert shown(lines, "hex") == [(None, "ff00e9"), (None, "62")]


@pytest.mark.parametrize(("kind", "line"), [("hex", "ff00"), ("base64", "/wA="), ("bytes", "/wA=")])
def test_bytes_can_be_spelt_in_hex_and_base64(lines, kind, line):
    lines.ok("produce", "lines", "--value-type", kind, stdin=line)
    assert shown(lines, "hex") == [(None, "ff00")]


def test_lines_of_files_are_written_in_turn(lines):
    for name, text in {"one.txt": "a\nb\n", "two.txt": "c"}.items():
        (lines.folder / name).write_text(text)
    lines.ok("produce", "lines", "--file", "one.txt", "--file", "two.txt")
    assert [value for _, value in shown(lines)] == ["a", "b", "c"]


def test_a_whole_file_is_one_record(lines):
    (lines.folder / "photo").write_bytes(b"\xff\n\x00\r\n")
    lines.ok("produce", "lines", "--file", "photo", "--whole", "--key", "me")
    assert shown(lines, "hex") == [("me", "ff0a000d0a")]


def test_text_that_is_not_utf8_is_refused_with_its_line_and_a_cure(lines):
    refused = lines("produce", "lines", stdin=b"good\nr\xe9sum\xe9\nlater\n")
    assert refused.status == 1
    assert "line 2 of the input was not written, nor what follows it: it is not UTF-8" in refused.err
    assert "--value-type raw" in refused.err
    assert [value for _, value in shown(lines)] == ["good"]


def test_json_that_is_not_utf8_is_refused_with_its_line(lines):
    refused = lines("produce", "lines", "--json", stdin=b'{"value":"\xe9"}\n')
    assert refused.status == 1
    assert "line 1 " in refused.err
    assert "please report" not in refused.err


def test_closed_input_is_said(lines):
    command = f"exec {COMMAND} produce lines <&-"
    refused = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr == ("kstreams: standard input is closed: give lines by a pipe, or name a file with --file\n")


@pytest.mark.parametrize("timestamp", [-1, -(2**70), 2**63])
def test_a_timestamp_that_is_no_time_is_refused(lines, timestamp):
    refused = lines("produce", "lines", "--json", stdin=f'{{"value":"a","timestamp":{timestamp}}}\n')
    assert refused.status == 1
    assert f"line 1 of the input was not written, nor what follows it: its timestamp {timestamp}" in refused.err
    assert shown(lines) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("-s", ""),
        ("--json", "--whole"),
        ("--json", "-s", "="),
        ("--json", "--key", "a"),
        ("-s", "=", "--key", "a"),
        ("--file", "nowhere"),
        ("--file", "."),
        ("--value-type", "integer"),
    ],
)
def test_what_cannot_be_asked_for_is_status_2(lines, arguments):
    assert lines("produce", "lines", *arguments).status == 2


def test_a_partition_that_is_not_there_is_named_with_the_line(lines):
    refused = lines("produce", "lines", "--json", stdin='{"value":1}\n{"value":1,"partition":7}\n')
    assert refused.status == 1
    assert "line 2 " in refused.err
    assert "not 7" in refused.err
