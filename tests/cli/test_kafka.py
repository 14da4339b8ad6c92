"""`kstreams topics`, `produce`, `consume` and `run` on a real Kafka: what they print on the embedded log."""

from __future__ import annotations

import pytest

from tests.support.kafka_topics import delete_everything

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture(params=["embedded", "kafka"])
def home(request, kafka, monkeypatch):
    delete_everything(kafka.bootstrap_servers)
    if request.param == "kafka":
        monkeypatch.setenv("KSTREAMS_BOOTSTRAP_SERVERS", kafka.bootstrap_servers)


def test_topics_are_written_and_read_with_the_same_output(kstreams, home):
    kstreams.ok("topics", "create", "words", "--partitions", "2", "--config", "retention.ms=600000")
    assert kstreams.ok("topics", "list").out.splitlines() == [
        "topic\tpartitions\trecords\tconfig",
        "words\t2\t0\tretention.ms=600000",
    ]
    kstreams.ok("produce", "words", "-s", ":", stdin="a:one\nb:two\nd:three\n")
    rows = kstreams.ok("consume", "words", "--from-beginning", "--until-end", "--json").json_lines()
    found = sorted((row["partition"], row["offset"], row["key"], row["value"]) for row in rows)
    assert found == [(0, 0, "a", "one"), (0, 1, "b", "two"), (1, 0, "d", "three")]
    described = kstreams.ok("topics", "describe", "words", "--json").json_lines()
    assert [(part["first_offset"], part["next_offset"]) for part in described] == [(0, 2), (0, 1)]
    assert "hold" in kstreams("topics", "delete", "words").err
    kstreams.ok("topics", "delete", "words", "--force")
    assert kstreams.ok("topics", "list", "--json").out == ""


def test_a_topic_gets_more_partitions(kstreams, home):
    kstreams.ok("topics", "create", "words", "--config", "retention.ms=600000")
    kstreams.ok("topics", "alter", "words", "--partitions", "3", "-c", "retention.ms=")
    assert kstreams.ok("topics", "list").out.splitlines()[1:] == ["words\t3\t0\t"]
    assert "3 partitions" in kstreams("topics", "alter", "words", "-p", "2").err


def test_an_unknown_topic_is_named_with_the_nearest(kstreams, home):
    kstreams.ok("topics", "create", "flights")
    refused = kstreams("consume", "flight", "--until-end")
    assert refused.status == 1
    assert "'flights'" in refused.err


def test_an_application_runs_by_its_configuration_alone(kstreams, home):
    (kstreams.folder / "app.py").write_text(
        "import kstreams as ks\n"
        "builder = ks.StreamsBuilder()\n"
        "words = builder.stream('lines', key=str, value=str).flat_map_values(lambda line: line.split(), value=str)\n"
        "counts = words.group_by(lambda _, word: word, key=str).count()\n"
        "counts.to_stream().to('counts', key=str, value=int)\n"
        "topology = builder.build()\n"
    )
    for topic in ("lines", "counts"):
        kstreams.ok("topics", "create", topic)
    kstreams.ok("produce", "lines", stdin="to be or not to be\n")
    kstreams.ok("run", "app.py", "--until-end")
    read = (
        "consume",
        "counts",
        "--from-beginning",
        "--until-end",
        "--json",
        "--key-type",
        "str",
        "--value-type",
        "int",
    )
    counts = {row["key"]: row["value"] for row in kstreams.ok(*read).json_lines()}
    assert counts == {"to": 2, "be": 2, "or": 1, "not": 1}
    kstreams.ok("run", "app.py", "--until-end", "--reset")
    assert {row["key"]: row["value"] for row in kstreams.ok(*read).json_lines()} == counts


def test_quotas_of_the_home_are_set_listed_and_removed(kstreams, home):
    kstreams.ok("topics", "create", "words")
    kstreams.ok("quotas", "set", "reports", "--producer-byte-rate", "1MiB")
    kstreams.ok("quotas", "set", "--default", "--consumer-byte-rate", "2000")
    assert kstreams.ok("quotas", "list", "--json").json_lines() == [
        {"client_id": None, "producer_byte_rate": None, "consumer_byte_rate": 2000},
        {"client_id": "reports", "producer_byte_rate": 1048576, "consumer_byte_rate": None},
    ]
    kstreams.ok("quotas", "remove", "reports")
    kstreams.ok("quotas", "remove", "--default")
    assert kstreams.ok("quotas", "list").out == ""
