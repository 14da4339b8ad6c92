"""Quotas of the embedded log: the rate holds over all processes of a client id, and no promise is broken for it."""

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kstreams.errors import BufferFullError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.log import Log, Producer, open_log
from tests.log.contract.reading import values_of
from tests.log.embedded.files import run

SOURCE = TopicPartition("words", 0)
BYTES = 100 - 16 - 1  # of a value, so that its record counts 100 bytes
WINDOW_S = 10


class World:
    """A log with a clock that moves when somebody waits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock(1_000_000)
        self.log: Log = open_log(folder, clock=self.clock)
        self.admin = self.log.admin()
        self.admin.create_topic("words")

    def quota(self, client_id: str | None, **rates: int | None) -> None:
        self.admin.alter_client_quotas(client_id, rates)

    def send(self, records: int, **settings: object) -> float:
        """Send records of 100 bytes; the seconds that it took."""
        with self.log.producer({"client.id": "a", **settings}) as producer:
            return self.send_by(producer, records)

    def send_by(self, producer: Producer, records: int) -> float:
        start_ms = self.clock.uptime_ms()
        for _ in range(records):
            producer.send("words", b"k", b"v" * BYTES)
        producer.flush()
        return (self.clock.uptime_ms() - start_ms) / 1000

    def read(self, records: int) -> float:
        """Read records; the seconds that it took."""
        start_ms = self.clock.uptime_ms()
        with self.log.consumer({"client.id": "a"}) as consumer:
            consumer.assign([SOURCE])
            count = 0
            while count < records:
                count += sum(map(len, consumer.poll(0.5, 20)))
        return (self.clock.uptime_ms() - start_ms) / 1000


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    with world.log:
        yield world


def test_the_rate_holds_after_a_window_that_is_free(world: World) -> None:
    world.quota("a", producer_byte_rate=1_000)
    assert world.send(WINDOW_S * 10) == 0
    assert world.send(200) == pytest.approx(19, abs=1)
    assert world.send(600) == pytest.approx(60, abs=1)
    world.clock.advance(3_600_000)
    assert world.send(WINDOW_S * 10) == 0  # an hour without records is worth no more than the window


def test_a_consumer_reads_by_its_rate(world: World) -> None:
    assert world.send(1_000) == 0
    world.quota("a", consumer_byte_rate=1_000)
    bytes_read = 1_000 * (BYTES + 1 + 8 + 2 * 4)  # with the times and Arrow's offsets
    assert world.read(1_000) == pytest.approx(bytes_read / 1_000 - WINDOW_S, abs=4)
    assert len(values_of(world.log, "words")) == 1_000


def test_clients_of_one_id_share_its_quota_and_other_ids_have_their_own(world: World) -> None:
    world.quota(None, producer_byte_rate=1_000)
    with world.log.producer({"client.id": "a"}) as one, world.log.producer({"client.id": "a"}) as other:
        assert world.send_by(one, WINDOW_S * 10) == 0
        assert world.send_by(other, 10) == 0
        assert world.send_by(one, 10) == pytest.approx(1, abs=0.1)
    assert world.send(WINDOW_S * 10, **{"client.id": "b"}) == 0
    assert world.send(WINDOW_S * 10, **{"client.id": None}) == 0
    assert world.send(20, **{"client.id": None}) == pytest.approx(1, abs=0.1)


WRITES = """
import sys
from kstreams.kernel.clock import ManualClock
from kstreams.log import open_log
clock = ManualClock(int(sys.argv[2]))
log = open_log(sys.argv[1], clock=clock)
producer = log.producer({"client.id": "a"})
for _ in range(int(sys.argv[3])):
    producer.send("words", b"k", b"v" * 83)
producer.flush()
print(clock.uptime_ms() - int(sys.argv[2]))
import os; os._exit(0)  # as a process that is killed: nothing is closed
"""


def test_processes_share_the_quota_and_a_killed_one_leaves_its_bytes(world: World) -> None:
    world.quota("a", producer_byte_rate=1_000)
    assert run(WRITES, world.folder, world.clock.uptime_ms(), WINDOW_S * 10) == "0\n"
    assert run(WRITES, world.folder, world.clock.uptime_ms(), 10) == "0\n"
    assert world.send(1) == pytest.approx(1, abs=0.1)


def test_a_quota_that_is_raised_or_removed_ends_the_wait_but_not_the_bytes(world: World) -> None:
    world.quota("a", producer_byte_rate=100)
    assert world.send(WINDOW_S + 100, **{"quota.delays": False}) == 0
    with world.log.producer({"client.id": "a", "max.block.ms": 100}) as producer:
        assert producer.throttling().remaining_ms == pytest.approx(100_000, abs=2_000)
        with pytest.raises(BufferFullError, match=r"`max\.block\.ms`.*the quota producer_byte_rate of 100 .*'a'"):
            producer.send("words", b"k", b"v")
        world.quota("a", producer_byte_rate=10_000)
        world.clock.advance(1_000)
        assert producer.throttling().remaining_ms < 1_000
        world.quota("a", producer_byte_rate=1)
        world.send(10, **{"quota.delays": False})
        world.clock.advance(1_000)
        assert producer.throttling().remaining_ms > 0
        world.quota("a", producer_byte_rate=None)
        world.clock.advance(1_000)
        assert producer.throttling().remaining_ms == 0
        assert world.send_by(producer, 10_000) == 0


def test_close_writes_at_once_what_the_next_producer_pays_for(world: World) -> None:
    world.quota("a", producer_byte_rate=1_000)
    start_ms = world.clock.uptime_ms()
    with world.log.producer({"client.id": "a", "linger.ms": -1, "batch.size": 1 << 20}) as producer:
        world.send_by(producer, WINDOW_S * 10)
        for _ in range(9):
            producer.send("words", b"k", b"v" * BYTES)
    assert world.clock.uptime_ms() == start_ms
    assert len(values_of(world.log, "words")) == WINDOW_S * 10 + 9
    assert world.send(1) == pytest.approx(0.9, abs=0.1)


def test_a_transaction_that_is_open_is_not_delayed_but_the_next_one(world: World) -> None:
    world.quota("a", producer_byte_rate=1_000)
    settings = {"client.id": "a", "transactional.id": "t", "transaction.timeout.ms": 5_000}
    with world.log.producer(settings) as producer:
        producer.begin_transaction()
        assert world.send_by(producer, 1_000) == 0
        producer.commit_transaction()
        start_ms = world.clock.uptime_ms()
        producer.begin_transaction()
        assert world.clock.uptime_ms() - start_ms == pytest.approx(90_000, abs=1_000)
        producer.send("words", b"k", b"last")
        producer.commit_transaction()
    assert values_of(world.log, "words")[-1] == b"last"


def test_poll_returns_in_time_and_says_that_there_may_be_more(world: World) -> None:
    world.send(300)
    world.quota("a", consumer_byte_rate=1_000)
    with world.log.consumer({"client.id": "a"}) as consumer:
        consumer.assign([SOURCE])
        assert sum(map(len, consumer.poll(1.0, 10_000))) == 300
        assert consumer.is_at_end(SOURCE)
        start_ms = world.clock.uptime_ms()
        assert consumer.poll(1.0) == []
        assert world.clock.uptime_ms() - start_ms <= 1_000
        assert not consumer.is_at_end(SOURCE)
        consumer.wakeup()
        start_ms = world.clock.uptime_ms()
        assert consumer.poll(1.0) == []
        assert world.clock.uptime_ms() == start_ms
        world.clock.advance(60_000)
        assert consumer.poll() == []
        assert consumer.is_at_end(SOURCE)


def test_a_member_that_is_delayed_stays_in_its_group(tmp_path: Path) -> None:
    settings = {
        "group.id": "readers", "client.id": "a", "session.timeout.ms": 400, "heartbeat.interval.ms": 50,
        "max.poll.interval.ms": 500,
    }  # fmt: skip
    with open_log(tmp_path) as log, log.admin() as admin:
        admin.create_topic("words")
        with log.producer() as producer:
            producer.send("words", b"k", b"v" * 100_000)
        admin.alter_client_quotas("a", {"consumer_byte_rate": 1_000})
        with log.consumer(settings) as consumer:
            consumer.subscribe(["words"])
            while not consumer.poll(0.1):
                pass
            before = admin.describe_group("readers")
            for _ in range(10):
                assert consumer.poll(0.1) == []
            assert consumer.throttling().remaining_ms > 60_000
            assert admin.describe_group("readers") == before
            consumer.commit()
            assert consumer.committed([SOURCE])[SOURCE].offset == 1


def test_close_by_another_thread_ends_a_wait(tmp_path: Path) -> None:
    with open_log(tmp_path) as log, log.admin() as admin:
        admin.create_topic("words")
        admin.alter_client_quotas("a", {"producer_byte_rate": 1})
        producer = log.producer({"client.id": "a", "max.block.ms": 3_600_000})
        producer.send("words", b"k", b"v" * 1_000)
        producer.flush()
        failures: list[str] = []

        def send() -> None:
            try:
                producer.send("words", b"k", b"next")
            except Exception as error:
                failures.append(str(error))

        sender = threading.Thread(target=send)
        sender.start()
        producer.close()
        sender.join(60)
        assert not sender.is_alive()
        assert failures == ["This producer is closed: open another."]
        assert values_of(log, "words") == [b"v" * 1_000]


@pytest.mark.parametrize("damage", [b"", b"\xff" * 36, b"\x00" * 20])
def test_a_torn_account_is_a_new_one(world: World, damage: bytes) -> None:
    world.quota("a", producer_byte_rate=1_000)
    world.send(WINDOW_S * 10 + 50)
    digest = hashlib.sha256(b"a").hexdigest()[:32]
    (world.folder / "quotas" / f"{digest}.producer_byte_rate").write_bytes(damage)
    assert world.send(WINDOW_S * 10) == 0
