"""`kstreams topics`, `produce` and `consume` on an embedded log."""

from __future__ import annotations

import pytest


def test_a_topic_is_created_listed_and_described(kstreams):
    kstreams.ok("topics", "create", "airlines", "--partitions", "2", "--config", "cleanup.policy=compact")

    (row,) = kstreams.ok("topics", "list", "--json").json_lines()
    assert (row["topic"], row["partitions"], row["records"]) == ("airlines", 2, 0)
    assert row["config"]["cleanup.policy"] == "compact"
    described = kstreams.ok("topics", "describe", "airlines", "--json").json_lines()
    assert [(part["partition"], part["next_offset"]) for part in described] == [(0, 0), (1, 0)]


def test_a_topic_gets_more_partitions_and_other_settings(kstreams):
    kstreams.ok("topics", "create", "lines", "--config", "retention.ms=5")
    altered = kstreams.ok("topics", "alter", "lines", "-p", "3", "-c", "retention.ms=", "-c", "segment.bytes=2048")
    assert altered.err.splitlines() == ["lines has 3 partitions"]
    assert kstreams.ok("topics", "list").out.splitlines()[1:] == ["lines\t3\t0\tsegment.bytes=2048"]

    refused = kstreams("topics", "alter", "lines", "--partitions", "2")
    assert refused.status == 1
    assert "3 partitions" in refused.err
    assert kstreams("topics", "alter", "lines").status == 2
    assert "'lines'" in kstreams("topics", "alter", "line", "-p", "4").err


def test_into_a_pipe_a_list_is_tab_separated_and_names_only_changed_settings(kstreams):
    kstreams.ok("topics", "create", "a")
    kstreams.ok("topics", "create", "b", "-c", "retention.ms=5")
    assert kstreams.ok("topics", "list").out.splitlines() == [
        "topic\tpartitions\trecords\tconfig",
        "a\t1\t0\t",
        "b\t1\t0\tretention.ms=5",
    ]


def test_a_topic_with_records_is_deleted_only_by_force(kstreams):
    kstreams.ok("topics", "create", "lines")
    kstreams.ok("produce", "lines", stdin="one\ntwo\n")

    refused = kstreams("topics", "delete", "lines")
    assert refused.status == 1
    assert "2 records" in refused.err
    assert "--force" in refused.err
    assert len(kstreams.ok("topics", "list", "--json").json_lines()) == 1

    kstreams.ok("topics", "delete", "lines", "--force")
    assert kstreams.ok("topics", "list", "--json").out == ""


def test_an_empty_topic_is_deleted_without_force(kstreams):
    kstreams.ok("topics", "create", "lines")
    kstreams.ok("topics", "delete", "lines")
    assert kstreams.ok("topics", "list").out == ""


def test_lines_become_records_and_are_printed_as_objects(kstreams):
    kstreams.ok("topics", "create", "wind")
    kstreams.ok("produce", "wind", "--separator", ":", stdin='EWR:{"speed":20}\nJFK:calm\n')

    first, second = kstreams.ok("consume", "wind", "--from-beginning", "--until-end", "--json").json_lines()
    assert list(first) == ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]
    assert (first["topic"], first["partition"], first["offset"]) == ("wind", 0, 0)
    assert (first["key"], first["value"], first["headers"]) == ("EWR", {"speed": 20}, [])
    assert (second["key"], second["value"], second["offset"]) == ("JFK", "calm", 1)


def test_json_lines_carry_everything_from_one_topic_to_another(kstreams):
    kstreams.ok("topics", "create", "from")
    kstreams.ok("topics", "create", "to")
    rows = [
        '{"key":"a","value":{"n":1},"timestamp":5,"headers":[["source","test"],["empty",null]]}',
        '{"key":null,"value":"text","timestamp":6}',
        '{"key":"gone","value":null,"timestamp":7}',
        '{"key":"raw","value":{"base64":"AAH/"},"timestamp":8}',
    ]
    kstreams.ok("produce", "from", "--json", stdin="\n".join(rows))
    copied = kstreams.ok("consume", "from", "--from-beginning", "--until-end", "--json").out
    kstreams.ok("produce", "to", "--json", stdin=copied)

    again = kstreams.ok("consume", "to", "--from-beginning", "--until-end", "--json").out
    assert again == copied.replace('"topic":"from"', '"topic":"to"')
    assert '"headers":[["source","test"],["empty",null]]' in again


def test_numbers_are_written_and_read_by_the_bytes_of_their_serde(kstreams):
    kstreams.ok("topics", "create", "counts")
    kstreams.ok("produce", "counts", "-s", "=", "--value-type", "int", stdin="a=1\nb=-2\n")
    read = kstreams.ok("consume", "counts", "--from-beginning", "--until-end", "--json", "--value-type", "int")
    assert [(row["key"], row["value"]) for row in read.json_lines()] == [("a", 1), ("b", -2)]


def test_one_partition_from_an_offset_and_a_limit(kstreams):
    kstreams.ok("topics", "create", "lines")
    kstreams.ok("produce", "lines", stdin="zero\none\ntwo\nthree\n")
    options = ("--partition", "0", "--offset", "1", "--max", "2", "--json")
    read = kstreams.ok("consume", "lines", "--until-end", *options)
    assert [row["value"] for row in read.json_lines()] == ["one", "two"]


def test_without_from_beginning_what_is_there_already_is_not_shown(kstreams):
    kstreams.ok("topics", "create", "lines")
    kstreams.ok("produce", "lines", stdin="old\n")
    assert kstreams.ok("consume", "lines", "--until-end").out == ""


def test_text_lines_show_time_place_key_and_value(kstreams):
    kstreams.ok("topics", "create", "lines")
    kstreams.ok("produce", "lines", "--json", stdin='{"key":"a","value":{"n":1},"timestamp":1500}')
    shown = kstreams.ok("consume", "lines", "--from-beginning", "--until-end").out
    assert shown == '1970-01-01T00:00:01.500Z\t0@0\ta\t{"n":1}\n'


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        (("produce", "lines", "-s", ":"), "a:1\nb\n", "line 2 .* no ':' between key and value"),
        (("produce", "lines", "--json"), '{"key":1}\n{"kye":1}\n', "line 2 .*kye"),
        (("produce", "lines", "--json"), "nonsense\n", "line 1 "),
        (("produce", "lines", "--value-type", "int"), "7\nseven\n", "line 2 .*'seven' cannot be read as int"),
        (("produce", "nowhere"), "a\n", "nowhere"),
        (("consume", "nowhere"), "", "nowhere"),
        (("consume", "lines", "--partition", "3"), "", "partitions 0 to 0, not 3"),
        (("topics", "describe", "line"), "", "lines"),
        (("topics", "create", "lines"), "", "exists already"),
        (("topics", "create", "a/b"), "", "no topic name"),
        (("topics", "create", "x", "-c", "retention=1"), "", "retention.ms"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_status_1(kstreams, arguments, stdin, said):
    import re

    kstreams.ok("topics", "create", "lines")
    outcome = kstreams(*arguments, stdin=stdin)
    assert outcome.status == 1
    assert re.search(said, outcome.err)
    assert len(outcome.err.splitlines()) == 1
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("unknown",),
        ("topics", "create"),
        ("consume", "t", "--offset", "1"),
        ("topics", "create", "x", "-c", "nonsense"),
    ],
)
def test_what_is_asked_wrongly_is_status_2(kstreams, arguments):
    assert kstreams(*arguments).status == 2


def test_lines_before_a_bad_one_are_written(kstreams):
    kstreams.ok("topics", "create", "numbers")
    assert kstreams("produce", "numbers", "--value-type", "int", stdin="1\n2\nthree\n4\n").status == 1
    read = kstreams.ok("consume", "numbers", "--from-beginning", "--until-end", "--value-type", "int", "--json")
    assert [row["value"] for row in read.json_lines()] == [1, 2]


def test_reading_from_a_folder_without_a_log_makes_none(kstreams):
    outcome = kstreams("topics", "list", "--log-dir", "mistyped")
    assert outcome.status == 1
    assert "no log in mistyped" in outcome.err
    assert not (kstreams.folder / "mistyped").exists()


def test_the_log_folder_comes_from_the_environment_and_from_the_option(kstreams, monkeypatch):
    monkeypatch.setenv("KSTREAMS_LOG_DIR", "elsewhere")
    kstreams.ok("topics", "create", "a")
    assert (kstreams.folder / "elsewhere").is_dir()
    kstreams.ok("topics", "create", "b", "--log-dir", "third")
    assert [row["topic"] for row in kstreams.ok("topics", "list", "--json", "--log-dir", "third").json_lines()] == ["b"]
