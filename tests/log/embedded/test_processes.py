"""Many processes write and read one log; a killed one leaves nothing that hurts."""

import random
import time
from pathlib import Path

import pytest

from kstreams.errors import LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log, verify
from tests.log.contract.copiers import no_locks_of
from tests.log.contract.reading import sources, values_of
from tests.log.embedded.files import kill, start
from tests.support.examples import few_of

WRITER = """
import sys
from kstreams.log import open_log
folder, name, count, durability, config = sys.argv[1:6]
with open_log(folder, durability=durability) as log, log.producer(eval(config)) as producer:
    for i in range(int(count)):
        producer.send("words", b"%d" % i, f"{name} {i}".encode(), on_delivery=lambda delivery, i=i: print(i))
        if i % 50 == 49:
            producer.flush()
            sys.stdout.flush()
"""

READER = """
import sys
from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log
with open_log(sys.argv[1]) as log, log.consumer() as consumer:
    consumer.assign([TopicPartition("words", 0), TopicPartition("words", 1)])
    seen = 0
    while seen < int(sys.argv[2]):
        for batch in consumer.poll(timeout=5):
            offsets = batch.offsets.tolist()
            assert offsets == list(range(offsets[0], offsets[0] + len(batch)))
            seen += len(batch)
    print(seen)
"""


def created(folder: Path, **config: str) -> Path:
    with open_log(folder) as log:
        log.admin().create_topic("words", 2, {key.replace("_", "."): value for key, value in config.items()})
    return folder


def test_writers_at_once_lose_nothing_and_keep_their_order_while_one_reads(tmp_path: Path) -> None:
    created(tmp_path, segment_bytes="20000")
    reader = start(READER, tmp_path, 6_000)
    writers = [start(WRITER, tmp_path, name, 2_000, "os", "{'batch.size': 2000}") for name in "abc"]
    for process in [*writers, reader]:
        process.communicate(timeout=120)
        assert process.returncode == 0
    with open_log(tmp_path) as log:
        for partition in range(2):
            with log.consumer() as consumer:
                consumer.assign([TopicPartition("words", partition)])
                values = [row.value for batch in consumer.poll(max_records=10_000) for row in batch.rows()]
            for name in b"abc":
                mine = [int(value.split()[1]) for value in values if value[0] == name]
                assert mine == sorted(mine)
        expected = sorted(b"%c %d" % (name, i) for name in b"abc" for i in range(2_000))
        assert sorted(value or b"" for value in values_of(log, "words", 2)) == expected
    assert verify(tmp_path) == []


@pytest.mark.parametrize("durability", few_of(["fsync", "os"], 1))
def test_what_a_killed_writer_was_told_is_there(tmp_path: Path, durability: str) -> None:
    created(tmp_path, segment_bytes="5000")
    moments = random.Random(11)
    acknowledged: list[bytes] = []
    for life in range(5):
        process = start(WRITER, tmp_path, life, 1_000_000, durability, "{'linger.ms': 1}")
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(moments.uniform(0, 0.05))
        lines = (first + kill(process)).splitlines(keepends=True)
        acknowledged += [f"{life} {line.strip()}".encode() for line in lines if line.endswith("\n")]
        assert verify(tmp_path) == []
    with open_log(tmp_path) as log:
        assert set(acknowledged) <= set(values_of(log, "words", 2))
        with log.producer() as producer:
            producer.send("words", b"k", b"and on it goes")
        assert b"and on it goes" in values_of(log, "words", 2)
    assert verify(tmp_path) == []
    assert len(acknowledged) > 100


TRANSACTIONS = """
import sys
from kstreams.kernel.batch import TopicPartition
from kstreams.log import OffsetAndMetadata, open_log
source = TopicPartition("words", 0)
with open_log(sys.argv[1]) as log, log.producer({"transactional.id": "app"}) as producer:
    admin = log.admin()
    while True:
        at = admin.committed("g", [source]).get(source, OffsetAndMetadata(0)).offset
        producer.begin_transaction()
        for i in range(at, at + 20):
            producer.send("words", b"%d" % i, b"%d" % i)
            if i % 7 == 0:
                producer.flush()
        producer.commit_transaction({source: OffsetAndMetadata(at + 20)}, "g")
        print(at + 20, flush=True)
"""


def test_records_and_offsets_of_a_killed_transactional_writer_agree(tmp_path: Path) -> None:
    created(tmp_path, segment_bytes="20000")
    moments = random.Random(13)
    for _ in range(6):
        process = start(TRANSACTIONS, tmp_path)
        assert process.stdout is not None
        told = [int(process.stdout.readline()) for _ in range(moments.randrange(1, 6))]
        time.sleep(moments.uniform(0, 0.05))
        kill(process)
        with open_log(tmp_path) as log:
            log.producer({"transactional.id": "app"}).close()
            log.clean()
            (committed,) = log.admin().committed("g", sources("words")).values() or [None]
            end = 0 if committed is None else committed.offset
            values = sorted(int(value or b"") for value in values_of(log, "words", 2))
            assert values == list(range(end))
            assert end >= told[-1]
        assert verify(tmp_path) == []


def test_opening_a_new_log_at_once_in_many_processes(tmp_path: Path) -> None:
    program = "import sys; from kstreams.log import open_log; print(len(open_log(sys.argv[1]).admin().topics()))"
    processes = [start(program, tmp_path / "log") for _ in range(6)]
    assert [process.communicate(timeout=60)[0] for process in processes] == ["0\n"] * 6


PREPARING = """
import signal
import sys
from kstreams.log import open_log
folder, token, value = sys.argv[1:4]
with open_log(folder) as log, log.producer({"transaction.coordinator": token}) as producer:
    producer.begin_transaction()
    producer.send("words", b"k", value.encode(), partition=0)
    producer.flush()
    print(producer.prepare_transaction(), flush=True)
    signal.pause()
"""


def test_what_other_processes_prepared_is_committed_though_they_are_killed(tmp_path: Path) -> None:
    created(tmp_path)
    with open_log(tmp_path) as log, log.coordinator("app") as coordinator:
        processes = [start(PREPARING, tmp_path, coordinator.token, value) for value in ("a", "b", "twice")]
        names = [process.stdout.readline().strip() for process in processes if process.stdout is not None]
        for process in processes:
            kill(process)
        assert values_of(log, "words", 2) == []
        coordinator.commit(names[:2])
        assert sorted(value or b"" for value in values_of(log, "words", 2)) == [b"a", b"b"]
    assert verify(tmp_path) == []


def test_a_process_that_keeps_the_catalogue_for_itself_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kstreams.log.embedded.catalogue.journaled_database._WAIT_S", 0.1)
    folder = created(tmp_path)
    with (
        no_locks_of(f"log:{folder}"),
        pytest.raises(LogError, match=r"keeps it locked .* resume or end it"),
    ):
        open_log(folder)
