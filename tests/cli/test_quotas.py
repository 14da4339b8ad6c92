"""`kstreams quotas`: the bytes per second of client ids."""

from __future__ import annotations

from typing import Any


def test_quotas_are_set_listed_and_removed(kstreams: Any) -> None:
    kstreams.ok("topics", "create", "words")
    assert kstreams.ok("quotas", "list").out == ""
    done = kstreams.ok("quotas", "set", "reports", "--producer-byte-rate", "1MiB", "--consumer-byte-rate", "2000")
    assert done.err == "set producer_byte_rate=1048576, consumer_byte_rate=2000 of reports\n"
    kstreams.ok("quotas", "set", "--default", "--consumer-byte-rate", "5 MiB")
    assert kstreams.ok("quotas", "list").out.splitlines() == [
        "client_id\tproducer_byte_rate\tconsumer_byte_rate",
        "\t\t5242880",
        "reports\t1048576\t2000",
    ]
    kstreams.ok("quotas", "remove", "reports", "--quota", "producer_byte_rate")
    assert kstreams.ok("quotas", "list", "--json").json_lines() == [
        {"client_id": None, "producer_byte_rate": None, "consumer_byte_rate": 5242880},
        {"client_id": "reports", "producer_byte_rate": None, "consumer_byte_rate": 2000},
    ]
    assert kstreams.ok("quotas", "remove", "reports").err == "removed consumer_byte_rate of reports\n"
    kstreams.ok("quotas", "remove", "--default")
    assert kstreams.ok("quotas", "list").out == ""


def test_mistakes_are_told(kstreams: Any) -> None:
    kstreams.ok("quotas", "set", "reports", "--producer-byte-rate", "5")
    for arguments, text in (
        (("set", "reports"), "name a quota"),
        (("set", "--producer-byte-rate", "5"), "name a client id, or give --default"),
        (("set", "a", "--default", "--producer-byte-rate", "5"), "name a client id, or give --default"),
        (("set", "a", "--producer-byte-rate", "fast"), "is no rate"),
        (("set", "a", "--producer-byte-rate", "0"), "at least 1 byte"),
        (("remove", "report"), "Did you mean 'reports'?"),
        (("remove", "reports", "--quota", "consumer_byte_rate"), "no such quota of reports"),
        (("remove", "reports", "--quota", "producer_rate"), "Did you mean 'producer_byte_rate'?"),
    ):
        refused = kstreams("quotas", *arguments)
        assert refused.status != 0
        assert text in " ".join(refused.err.replace("│", " ").split()), refused.err
