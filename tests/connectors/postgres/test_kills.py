"""The reader and the server are killed while rows change: the topic has each change once, and in order."""

from __future__ import annotations

import hashlib
import os
import random
import time
from pathlib import Path

import pytest

from kstreams.log import open_log
from kstreams.serdes import serde_of
from tests.connectors.running import topic_rows
from tests.log.embedded.files import kill, start
from tests.support.postgres import NEEDED, Postgres, can_run

pytest.importorskip("psycopg")

from tests.connectors.postgres.changing_table import (
    Version,
    Writers,
    check_history,
    create,
    history_in,
    last_versions,
    table_in,
)

pytestmark = pytest.mark.skipif(not can_run(), reason=NEEDED)

READER = """
import logging, sys
from threading import Event
import msgspec
import kstreams as ks
from kstreams.connectors.connector import ConnectorTopic, SourceConnector
from kstreams.connectors.workers import source_worker
from kstreams.kernel.clock import SystemClock
from kstreams.log import open_log
from kstreams.serdes import serde_of
logging.basicConfig(level=logging.INFO, filename=sys.argv[1] + "/reader.log")
class Item(msgspec.Struct):
    id: int
    version: int
    body: str | None
source = ks.sources.postgres(sys.argv[2], "items", Item, key="id", heartbeat=500)
topic = ConnectorTopic("items", serde_of(int), serde_of(Item))
with open_log(sys.argv[1] + "/log") as log:
    source_worker(SourceConnector("app", "in", topic, source), log, SystemClock()).run(Event())
"""
Records = list[tuple[int, Version]]


def records_in(folder: Path) -> Records:
    """Return keys and versions of all records of the topic, in their order, without the code of the source."""
    keys = serde_of(int)
    values = serde_of(dict)
    records: Records = []
    with open_log(folder / "log") as log:
        for key, value, _ in topic_rows(log, "items"):
            assert key is not None
            row = None if value is None else values.deserialize(value)
            digest = "" if row is None else hashlib.md5((row["body"] or "").encode()).hexdigest()
            records.append((keys.deserialize(key), None if row is None else (row["version"], digest)))
    return records


MANY = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    ("kills", "changes", "identity"),
    [
        (2, 4_000, "DEFAULT"),
        pytest.param(30, 100_000, "DEFAULT", marks=MANY),
        pytest.param(30, 100_000, "FULL", marks=MANY),
    ],
)
def test_each_change_is_in_the_topic_once_however_often_reader_and_server_are_killed(
    tmp_path: Path, kills: int, changes: int, identity: str
) -> None:
    seed = int(os.environ.get("KSTREAMS_TEST_SEED", time.time_ns() % 2**32))
    print(f"repeat with KSTREAMS_TEST_SEED={seed}")
    moments = random.Random(seed)
    with Postgres() as server:
        create(server, changes // 2, identity)
        with open_log(tmp_path / "log") as log, log.admin() as admin:
            admin.create_topic("items", 3)
        writers = Writers(server, changes, seed)
        reader = start(READER, tmp_path, server.url)
        try:
            writers.start()
            for _ in range(kills):
                time.sleep(moments.uniform(0.3, min(kills, 5.0)))
                if moments.random() < 0.3:
                    server.kill()
                    server.launch()
                else:
                    kill(reader)
                    reader = start(READER, tmp_path, server.url)
            writers.join()
            table = table_in(server)
            deadline = time.monotonic() + 240
            while last_versions(records := records_in(tmp_path)) != table:
                assert time.monotonic() < deadline, (tmp_path / "reader.log").read_text()[-3000:]
                assert reader.poll() is None, (tmp_path / "reader.log").read_text()[-3000:]
                time.sleep(0.5)
            time.sleep(1)
            assert records_in(tmp_path) == records
            check_history(records, history_in(server), full=identity == "FULL")
            assert len(records) > changes // 2
        finally:
            kill(reader)
            server.kill()
