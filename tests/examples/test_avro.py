"""Readings as Avro: what lies in the topics are records that fastavro reads, and the extremes of a day are right."""

from __future__ import annotations

import io
import json
from collections import defaultdict
from contextlib import closing
from typing import Any

import fastavro

from kstreams.config import Config
from kstreams.log.schema_registries import registry_of
from tests.examples.conftest import EXAMPLES, Terminal
from tests.examples.patterns import sample


def test_readings_and_extremes_are_records(terminal: Terminal) -> None:
    terminal.run("kstreams", "topics", "create", "readings")
    terminal.run("bash", "-c", f"kstreams produce readings --json < {EXAMPLES}/data/readings.jsonl")
    terminal.run("kstreams", "run", str(EXAMPLES / "avro" / "readings.py"), "--until-end")
    settings = {"schema.registry.url": "local:", "log.dir": terminal.folder / ".kstreams" / "log"}
    with closing(registry_of(Config.of(settings))) as registry:

        def record(data: str) -> Any:
            raw = bytes.fromhex(data)
            schema = registry.schema(int.from_bytes(raw[1:5], "big")).schema
            return fastavro.schemaless_reader(io.BytesIO(raw[5:]), fastavro.parse_schema(json.loads(schema.text)), None)

        written = [record(row["value"]) for row in terminal.rows("avro-readings", "--value-type", "hex")]
        extremes = {
            tuple(record(row["key"]).values()): record(row["value"])
            for row in terminal.rows("avro-extremes", "--key-type", "hex", "--value-type", "hex")
        }
        assert registry.version("avro-readings-value").schema.text.count("State") == 1
    readings = sample("readings")
    assert [row["celsius"] for row in written] == [row["value"]["celsius"] for row in readings]
    assert {row["state"] for row in written} <= {"COLD", "MILD", "WARM"}
    by_room: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in readings:
        by_room[row["key"], row["value"]["measured"][:10]].append(row["value"]["celsius"])
    found = {(room, str(date)): (each["coldest"], each["warmest"]) for (room, date), each in extremes.items()}
    assert found == {key: (min(degrees), max(degrees)) for key, degrees in by_room.items()}
