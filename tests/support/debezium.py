"""Debezium in a Kafka Connect worker, on a private PostgreSQL server and a private Kafka.

    with Captured() as captured:
        captured.execute("CREATE TABLE ...")
        captured.capture("shop", {"table.include.list": "public.orders"})  # topic shop.public.orders
        for message in captured.read("shop.public.orders", 3): ...

`python -m tests.support.debezium FILE` records the events that `tests/connect/debezium_types.jsonl` has.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from tests.support.kafka_cluster import KafkaCluster
from tests.support.kafka_connect import JSON_CONVERTER, ConnectWorker
from tests.support.postgres import Postgres

PACKAGE = "io.debezium:debezium-connector-postgres:3.7.0.Final"


class Captured:
    """PostgreSQL, Kafka and a Connect worker with Debezium's connector."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> Captured:
        import psycopg

        with self._stack as stack:  # the connector lets go of its slot before the server ends
            self.postgres = stack.enter_context(Postgres())
            self.kafka = stack.enter_context(KafkaCluster(1, {"auto.create.topics.enable": "true"}))
            settings = {"offset.flush.interval.ms": 4_000}  # a killed worker repeats the events of so long
            self.connect = stack.enter_context(
                ConnectWorker(self.kafka.bootstrap_servers, packages=[PACKAGE], settings=settings)
            )
            self.database = stack.enter_context(psycopg.connect(self.postgres.url, autocommit=True))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def execute(self, statement: str) -> None:
        self.database.execute(statement.encode())

    def capture(self, name: str, config: Mapping[str, object]) -> None:
        """Start a connector. Its name is also the prefix of its topics, and the name of its slot and publication."""
        self.connect.put(
            name,
            {
                "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
                "tasks.max": 1,
                "plugin.name": "pgoutput",
                "database.hostname": "127.0.0.1",
                "database.port": self.postgres.port,
                "database.user": "postgres",
                "database.password": "postgres",
                "database.dbname": "postgres",
                "topic.prefix": name,
                "slot.name": name,
                "publication.name": name,
                "publication.autocreate.mode": "filtered",  # the default publishes all tables
                "poll.interval.ms": 50,
                **config,
            },
        )
        self.connect.wait_running(name)

    def read(self, topic: str, count: int, seconds: float = 30) -> list[Any]:
        """Read the next messages of a topic."""
        from confluent_kafka import Consumer

        settings = {"bootstrap.servers": self.kafka.bootstrap_servers, "group.id": "read", "log_level": 3}
        consumer = Consumer({**settings, "auto.offset.reset": "earliest", "topic.metadata.refresh.interval.ms": 300})
        consumer.subscribe([topic])
        messages: list[Any] = []
        deadline = time.monotonic() + seconds
        while len(messages) < count and time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None and not message.error():  # a tombstone is falsy, as it has no length
                messages.append(message)
        consumer.close()
        return messages


_WITH_SCHEMAS = {
    setting: value
    for part in ("key", "value")
    for setting, value in ((f"{part}.converter", JSON_CONVERTER), (f"{part}.converter.schemas.enable", "true"))
}
_MODES: dict[str, dict[str, object]] = {
    "adaptive": {},
    "schemas": {**_WITH_SCHEMAS},
    "texts": {
        "decimal.handling.mode": "string",
        "time.precision.mode": "isostring",
        "interval.handling.mode": "string",
    },
    "connect": {"decimal.handling.mode": "double", "time.precision.mode": "connect", **_WITH_SCHEMAS},
    "nanos": {
        "time.precision.mode": "nanoseconds",
        "value.converter.decimal.format": "NUMERIC",
        **_WITH_SCHEMAS,
    },
}
_COLUMNS = """id int PRIMARY KEY, price numeric(8,2), free numeric, day date, clock time, clock3 time(3),
  seen timestamp, seen3 timestamp(3), at timestamptz, zoned time with time zone, lasted interval, ok boolean,
  small smallint, big bigint, r real, d double precision, raw bytea, tag uuid, doc jsonb, words text[], numbers int[],
  bigs bigint[], note text"""
_ROWS = (
    """(1, 1.50, 12.345, '2026-01-02', '03:04:05.678901', '03:04:05.678', '2026-01-02 03:04:05.678901',
    '2026-01-02 03:04:05.678', '2026-01-02 03:04:05.678901+02', '03:04:05+02', '1 day 2 hours', true, 7,
    9007199254740993, 1.5, 2.5, '\\x0102', '6b7f6a4e-4a43-4d5c-9a43-5e3f3a3d9a10', '{"a": 1}', '{a,b}', '{1,2}', '{3}',
    'hello')""",
    """(2, -0.01, -7, 'infinity', '00:00', '00:00', 'infinity', 'infinity', 'infinity', '00:00+00', '2 days', false, -1,
    -2, 'NaN', 'Infinity', '\\x', null, 'null', '{}', '{}', '{}', '')""",
    """(3, null, null, '-infinity', null, null, '-infinity', '-infinity', '-infinity', null, null, null, null, null,
    '-Infinity', '-Infinity', null, null, null, null, null, null, null)""",
)
_WIDE = """CREATE TABLE wide (id int PRIMARY KEY, n int, body text, raw bytea, doc jsonb, words text[], numbers int[],
  uuids uuid[], dates date[])"""
_WIDE_ROW = """INSERT INTO wide VALUES (1, 1, repeat('x', 3000), decode(repeat('ab', 3000), 'hex'),
  to_jsonb(repeat('j', 3000)), array_fill('w'::text, array[700]), array_fill(7, array[900]),
  array_fill('6b7f6a4e-4a43-4d5c-9a43-5e3f3a3d9a10'::uuid, array[200]), array_fill('2026-01-02'::date, array[700]))"""


def main(path: str) -> None:
    recorded: list[dict[str, object]] = []
    with Captured() as captured:

        def record(case: str, topic: str, count: int) -> None:
            for message in captured.read(topic, count):
                key, value = (part and part.decode() for part in (message.key(), message.value()))
                headers = [[name, text.decode()] for name, text in message.headers() or []]
                recorded.append({"case": case, "topic": topic, "headers": headers, "key": key, "value": value})

        captured.execute(f"CREATE TABLE types ({_COLUMNS})")
        for mode, config in _MODES.items():
            captured.execute("TRUNCATE types")
            for row in _ROWS:
                captured.execute(f"INSERT INTO types VALUES {row}")
            captured.capture(mode, {"table.include.list": "public.types", **config})
            record(f"{mode} snapshot", f"{mode}.public.types", len(_ROWS))
            for row in _ROWS:
                captured.execute(f"INSERT INTO types VALUES {row.replace('(', '(1', 1)}")
            record(f"{mode} change", f"{mode}.public.types", len(_ROWS))
            captured.connect.request(f"/connectors/{mode}", "DELETE")
        captured.execute(_WIDE)
        for column in ("body", "raw", "doc", "words", "numbers", "uuids", "dates"):
            captured.execute(f"ALTER TABLE wide ALTER COLUMN {column} SET STORAGE EXTERNAL")
        captured.execute(_WIDE_ROW)
        for mode, config in {"wide": {}, "wideschemas": _WITH_SCHEMAS}.items():
            settings = {"snapshot.mode": "no_data", "provide.transaction.metadata": "true", **config}
            captured.capture(mode, {"table.include.list": "public.wide", **settings})
            captured.execute("UPDATE wide SET n = n + 1")
            record(f"{mode} unchanged", f"{mode}.public.wide", 1)
    with open(path, "w") as file:
        file.writelines(json.dumps(each) + "\n" for each in recorded)


if __name__ == "__main__":
    main(sys.argv[1])
