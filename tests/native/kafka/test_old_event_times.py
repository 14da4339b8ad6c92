"""Event times of 1970, of last year and of today: what is restored from changelogs is all that was there.

The broker compacts and deletes as eagerly as it can. The application is killed twice, with the loss of its disk.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Log
from tests.native.world import World, until
from tests.support.kafka_cluster import KafkaCluster, can_run
from tests.support.kafka_topics import delete_everything

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

APP = Path(__file__).with_name("old_times_app.py")
EAGER = {
    "log.cleaner.backoff.ms": 50,
    "log.cleaner.min.cleanable.ratio": 0.0001,
    "log.cleaner.delete.retention.ms": 100,
    "log.initial.task.delay.ms": 100,
    "log.retention.check.interval.ms": 200,
    "log.retention.ms": 60_000,
    "log.roll.ms": 10_000,  # of event time
    "log.message.timestamp.after.max.ms": 2**63 - 1,
}
NOW_MS = int(time.time() * 1000)
DAY_MS = 86_400_000
TIMES = {"1970": 5_000_000, "last year": NOW_MS - 365 * DAY_MS, "today": NOW_MS - 4 * 3_600_000}
FOR_EVER = {"retention_ms": "-1"}
OUTPUTS = ("priced", "counts", "visits", "final", "pairs")
PRICES, TRADES, MARKS, KEYS = 2_000, 300, 200, 20

Rows = list[tuple[str, str, int]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    if not can_run():
        pytest.skip("a broker needs Java, and Maven to fetch it")
    with KafkaCluster(settings=EAGER) as started:
        yield started


@pytest.mark.parametrize("begin_ms", TIMES.values(), ids=TIMES)
def test_nothing_is_missed_after_two_kills_that_lose_the_disk(
    cluster: KafkaCluster, tmp_path: Path, begin_ms: int
) -> None:
    delete_everything(cluster.bootstrap_servers)
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "commit.interval.ms": 100}
    world = World(tmp_path, **settings)
    for topic in ("prices", "trades", "marks", "answers", *OUTPUTS):
        world.create(topic, **FOR_EVER)
    prices, marks = prices_from(begin_ms), marks_from(begin_ms)
    with killed_at_the_end(world) as is_done:
        for part in range(10):  # each makes a commit: segments hold whole batches
            world.write("prices", prices[part * 200 : part * 200 + 200])
            world.write("marks", marks[part * 20 : part * 20 + 20])
            until(is_done)
    with killed_at_the_end(world):
        world.write("trades", trades_from(begin_ms))
        world.write("marks", marks)
        world.write("answers", [(key, "yes", at) for key, _, at in marks])
    with killed_at_the_end(world):
        world.write("marks", [("end", "end", begin_ms + 3 * DAY_MS)])
    priced = [row.value for row in world.rows("priced")]
    wrong = sum(value != price for value, price in zip(priced, prices_of_trades(begin_ms), strict=True))
    assert (len(priced), wrong) == (TRADES, 0)
    minutes = Counter(f"{key}@{at // 60_000 * 60_000}" for key, _, at in marks * 2)
    table = world.table("counts", value=int)
    assert {key: count for key, count in table.items() if not key.startswith("end")} == minutes
    assert Counter({row.key: row.value for row in world.rows("final", value=int)}) == minutes
    assert sorted(row.value for row in world.rows("visits", value=int))[-1] == 2
    assert Counter(row.value for row in world.rows("pairs")) == pairs_of(marks)


def prices_from(begin_ms: int) -> Rows:
    return [(f"k{i % KEYS}", f"p{i}", begin_ms + i * 100) for i in range(PRICES)]


def trades_from(begin_ms: int) -> Rows:
    return [(f"k{i % KEYS}", f"t{i}", trade_ms(begin_ms, i)) for i in range(TRADES)]


def trade_ms(begin_ms: int, number: int) -> int:
    return begin_ms + 2_000 + number * 600


def prices_of_trades(begin_ms: int) -> list[str]:
    """By brute force: of each trade the last price at its time."""
    prices = prices_from(begin_ms)
    return [
        next(price for name, price, since in reversed(prices) if name == key and since <= at)
        for key, _, at in trades_from(begin_ms)
    ]


def marks_from(begin_ms: int) -> Rows:
    return [(f"m{i % 10}", f"m{i}", begin_ms + i * 900) for i in range(MARKS)]


def pairs_of(marks: Rows) -> Counter[str]:
    """Each answer meets each mark of its key."""
    per_key = Counter(key for key, _, _ in marks)
    return Counter({f"{mark}+yes": 2 * per_key[key] for key, mark, _ in marks})


@contextmanager
def killed_at_the_end(world: World) -> Iterator[Callable[[], bool]]:
    """The application runs; when it has processed everything it is killed, its disk is lost, and the broker cleans.

    What it gives says whether everything is processed.
    """
    given = [part for key, value in world.settings.items() for part in ("-c", f"{key}={value}")]
    process = subprocess.Popen([sys.executable, "-m", "kstreams", "run", str(APP), *given])

    def is_done() -> bool:
        assert process.poll() is None
        return _has_read_all(log)

    try:
        with world.log() as log:
            yield is_done
            until(is_done)
    finally:
        process.kill()
        process.wait()
    shutil.rmtree(world.settings["state.dir"])
    until_cleaned(world)


def _has_read_all(log: Log) -> bool:
    with log.admin() as admin:
        sources = [TopicPartition(topic, 0) for topic in ("prices", "trades", "marks", "answers")]
        ends, done = admin.end_offsets(sources), admin.committed("app", sources)
    return all(end == (done[source].offset if source in done else 0) for source, end in ends.items())


def until_cleaned(world: World) -> None:
    """Wait until the broker has compacted and deleted what it may: records of a moment ago are its measure."""
    measures = {
        f"compacted-{time.time_ns()}": {"cleanup_policy": "compact"},
        f"cut-{time.time_ns()}": {"retention_ms": "1"},
    }
    for topic, settings in measures.items():
        world.create(topic, **settings)
        for number in range(6):
            world.write(topic, [("k", "v", 1_000_000 + number * 20_000)])
    until(lambda: all(len(world.rows(topic)) < 4 for topic in measures))
    time.sleep(1)
