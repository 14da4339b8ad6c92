"""`kstreams consume --dead-letters`: the failure that the headers of a dead letter describe."""

from __future__ import annotations

from typing import Any

from kstreams.log import open_log
from tests.error_policies.test_connect_headers import OF_CONNECT


def test_failures_of_kafka_connect_are_shown(kstreams: Any) -> None:
    kstreams.ok("topics", "create", "failures")
    with open_log(kstreams.folder / ".kstreams" / "log") as log, log.producer() as producer:
        producer.send("failures", b"k", b"{bad", timestamp=0, headers=OF_CONNECT)
        producer.send("failures", b"k", b"plain", timestamp=0)
        producer.flush()
    command = ("consume", "failures", "--dead-letters", "--from-beginning", "--until-end")
    of_connect, other = kstreams.ok(*command).out.splitlines()
    assert of_connect.split("\t")[-1] == (
        "numbers-2@17 sink 0 VALUE_CONVERTER org.apache.kafka.connect.errors.DataException: "
        "Converting byte[] to Kafka Connect data failed"
    )
    assert other.endswith("\tno dead letter")
    first, second = kstreams.ok(*command, "--json").json_lines()
    assert first["failure"]["offset"] == 17
    assert second["failure"] is None
