"""Events of Debezium 3.7 as they came, and events of the same form made up by tests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

PLACEHOLDER = "__debezium_unavailable_value"


class Event(NamedTuple):
    case: str
    topic: str
    key: bytes | None
    value: bytes | None


def recorded(file: str) -> list[Event]:
    """The recorded events of a file, in their order."""
    return list(_events(file))


def _events(file: str) -> Iterator[Event]:
    for line in (Path(__file__).parent / file).read_text().splitlines():
        each = json.loads(line)
        key, value = (None if each[part] is None else each[part].encode() for part in ("key", "value"))
        yield Event(each["case"], each["topic"], key, value)


def of_case(file: str, case: str) -> list[Event]:
    return [each for each in recorded(file) if each.case == case]


def envelope(
    op: str,
    lsn: int | None,
    after: Mapping[str, object] | None = None,
    before: Mapping[str, object] | None = None,
    *,
    snapshot: str = "true",
) -> bytes:
    """An event as the connector for PostgreSQL writes it."""
    source = {
        "version": "3.7.0.Final",
        "connector": "postgresql",
        "name": "shop",
        "ts_ms": 1,
        "snapshot": snapshot if op == "r" else "false",
        "db": "postgres",
        "sequence": f'[null,"{lsn}"]',
        "schema": "public",
        "table": "items",
        "txId": 7,
        "lsn": lsn,
        "xmin": None,
    }
    event = {"before": before, "after": after, "source": source, "transaction": None, "op": op, "ts_ms": 2}
    return json.dumps(event, separators=(",", ":")).encode()


def key_of(identifier: int) -> bytes:
    return b'{"id":%d}' % identifier
