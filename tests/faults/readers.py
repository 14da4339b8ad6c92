"""Readers beside a writer, compaction, retention, deleted records and deleted topics: none dies, none reads wrongly.

The scenario is `readers-beside-compaction`.

Every record says at which offset it must stand, and its key follows from that: so each reader knows by itself what is
wrong. It reads four topics: `log` (retention and deleted records), `table` (compacted, with tombstones), `deals`
(transactions, every third of which is aborted, compacted too) and `brief` (deleted and made again all the time).
"""

from __future__ import annotations

import multiprocessing
import random
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from kstreams.errors import UnknownTopicError
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.log import Consumer, EmbeddedLog, open_log
from tests.log.embedded.files import segments

LOG, TABLE, DEALS, BRIEF = (TopicPartition(name, 0) for name in ("log", "table", "deals", "brief"))
KEYS = 150
SMALL = {"segment.bytes": "2048"}
TOPICS = {
    LOG: SMALL | {"retention.bytes": "60000"},
    TABLE: SMALL | {"cleanup.policy": "compact"},
    DEALS: SMALL | {"cleanup.policy": "compact"},
    BRIEF: SMALL,
}

Counts = Counter[str]


class WrongError(Exception):
    """A reader was given what it must not see, or not what it must."""


def key_of(offset: int) -> bytes:
    """The key of the record at an offset."""
    return b"k%d" % (offset * 2654435761 % 2**32 % KEYS)


def value_of(offset: int) -> bytes | None:
    """Its value: every ninetieth deletes its key."""
    return None if offset % 90 == 0 else b"%d " % offset + b"x" * (offset % 60)


# --- writing ---------------------------------------------------------------------------------------------------------


def write(folder: Path, seconds: float, seed: int) -> Counts:
    """Append to all topics; one process does, so that it knows the offsets."""
    chance, done, counts = random.Random(seed), time.monotonic() + seconds, Counts()
    with (
        open_log(folder) as log,
        log.producer({"linger.ms": -1}) as plain,
        log.producer({"transactional.id": "deals"}) as deals,
    ):
        ends = dict.fromkeys((LOG, TABLE, BRIEF), 0)
        while time.monotonic() < done:
            for source in ends:
                ends[source] += _append(plain, source, ends[source], chance.randrange(1, 25), counts)
            if counts["transactions"] < 200 or chance.random() < 0.2:  # each leaves a row, until housekeeping
                _deal(deals, chance.randrange(1, 20), aborted=chance.random() < 1 / 3)
                counts["transactions"] += 1
            time.sleep(chance.random() * 0.004)
    return counts


def _append(producer: object, source: TopicPartition, first: int, count: int, counts: Counts) -> int:
    try:
        for offset in range(first, first + count):
            producer.send(source.topic, key_of(offset), value_of(offset), timestamp=offset)  # type: ignore[attr-defined]
        producer.flush()  # type: ignore[attr-defined]
    except UnknownTopicError:
        return -first  # it was deleted: the next one begins at 0
    counts["records"] += count
    return count


def _deal(producer: object, count: int, aborted: bool) -> None:
    producer.begin_transaction()  # type: ignore[attr-defined]
    for number in range(count):
        producer.send("deals", b"k%d" % (number % 5), b"aborted" if aborted else b"committed")  # type: ignore[attr-defined]
    producer.flush()  # type: ignore[attr-defined]
    producer.abort_transaction() if aborted else producer.commit_transaction()  # type: ignore[attr-defined]


def disturb(folder: Path, seconds: float, seed: int) -> Counts:
    """Compact, apply retention, delete records and topics, again and again."""
    chance, done, counts = random.Random(seed + 1), time.monotonic() + seconds, Counts()
    with open_log(folder) as log, log.admin() as admin:
        while time.monotonic() < done:
            counts["compactions"] += _changes(folder, "table", lambda: log.clean("table"))
            counts["compactions"] += _changes(folder, "deals", lambda: log.clean("deals"))
            counts["retentions"] += _changes(folder, "log", lambda: log.clean("log"))
            if chance.random() < 0.2:
                start, end = admin.beginning_offsets([LOG])[LOG], admin.end_offsets([LOG])[LOG]
                admin.delete_records({LOG: chance.randrange(start, end + 1)})
                counts["deleted records"] += 1
            if chance.random() < 0.1:
                admin.delete_topic("brief")
                admin.create_topic("brief", config=TOPICS[BRIEF])
                counts["deleted topics"] += 1
            time.sleep(chance.random() * 0.005)
    return counts


def _changes(folder: Path, topic: str, clean: Callable[[], None]) -> bool:
    before = _inodes(folder, topic)
    clean()
    return before != _inodes(folder, topic)


def _inodes(folder: Path, topic: str) -> set[int]:
    found = set[int]()
    for path in segments(folder, topic)[:-1]:
        with suppress(FileNotFoundError):  # others clean as well
            found.add(path.stat().st_ino)
    return found


# --- reading ---------------------------------------------------------------------------------------------------------


def read(folder: Path, seconds: float, seed: int) -> Counts:
    """Two readers as threads of one process, each with all that can be read in turns."""
    counts = [Counts(), Counts()]
    with open_log(folder) as log:
        threads = [
            threading.Thread(target=_read, args=(log, seconds, seed * 2 + number, counts[number]))
            for number in range(len(counts))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return sum(counts, Counts())


def _read(log: EmbeddedLog, seconds: float, seed: int, counts: Counts) -> None:
    chance, done = random.Random(seed), time.monotonic() + seconds
    passes = [read_log, read_table, read_deals, read_brief, seek_in_log]
    while time.monotonic() < done:
        try:
            chance.choice(passes)(log, chance, counts)
        except WrongError as wrong:
            counts["wrong"] += 1
            print(f"wrong: {wrong}", file=sys.stderr)
        except Exception:
            counts["deaths"] += 1
            traceback.print_exc()
    counts["failed"] = int(counts["deaths"] + counts["wrong"] > 0)
    counts["readers"] = 1


def read_log(log: EmbeddedLog, chance: random.Random, counts: Counts) -> None:
    """No record is left out but those that are no longer in the log."""
    expected = None
    with _assigned(log, LOG) as consumer:
        for offset, row in _rows(consumer, chance, counts):
            _check(LOG, offset, row)
            _check_gap(log, expected, offset)
            expected = offset + 1


def seek_in_log(log: EmbeddedLog, chance: random.Random, counts: Counts) -> None:
    """By offset and by time, which here are the same."""
    with _assigned(log, LOG) as consumer, log.admin() as admin:
        for _ in range(20):
            wanted = chance.randrange(admin.beginning_offsets([LOG])[LOG], admin.end_offsets([LOG])[LOG] + 1)
            seek = chance.choice([consumer.seek, consumer.seek_to_time])
            seek(LOG, wanted)
            rows = [row for batch in consumer.poll(max_records=3) for row in _records(batch)]
            for offset, row in rows[:1]:
                _check(LOG, offset, row)
                _check_gap(log, wanted, offset)
            counts["reads"] += len(rows)


def read_table(log: EmbeddedLog, chance: random.Random, counts: Counts) -> None:
    """Of every key the last value is seen, whatever compaction does meanwhile."""
    seen: dict[bytes, int] = {}
    last = -1
    with _assigned(log, TABLE) as consumer, log.admin() as admin:
        wanted = range(admin.end_offsets([TABLE])[TABLE])
        for _ in range(4):  # what was compacted away under us comes later, as a newer record that was there already
            for offset, row in _rows(consumer, chance, counts, admin.end_offsets([TABLE])[TABLE]):
                _check(TABLE, offset, row)
                if offset <= last:
                    raise WrongError(f"table: offset {offset} comes after {last}")
                seen[row.key or b""] = last = offset
            missing = [offset for offset in wanted[-20 * KEYS :] if seen.get(key_of(offset), -1) < offset]
            if not missing:
                return
    raise WrongError(f"table: the keys of the offsets {missing} were not seen again")


def read_deals(log: EmbeddedLog, chance: random.Random, counts: Counts) -> None:
    """Nothing of an aborted transaction is seen, before or after compaction."""
    last = -1
    with _assigned(log, DEALS) as consumer:
        for offset, row in _rows(consumer, chance, counts):
            if row.value != b"committed" or offset <= last:
                raise WrongError(f"deals: {row} at offset {offset}, after {last}")
            last = offset


def read_brief(log: EmbeddedLog, chance: random.Random, counts: Counts) -> None:
    """A topic that is deleted under its reader ends it with UnknownTopicError; the next one begins anew."""
    try:
        with _assigned(log, BRIEF) as consumer:
            expected = 0
            for offset, row in _rows(consumer, chance, counts):
                _check(BRIEF, offset, row)
                if offset != expected:
                    raise WrongError(f"brief: offset {offset} where {expected} comes next")
                expected = offset + 1
    except UnknownTopicError:
        counts["deletions met"] += 1


def _assigned(log: EmbeddedLog, source: TopicPartition) -> Consumer:
    consumer = log.consumer()
    consumer.assign([source])
    return consumer


def _records(batch: Batch) -> Iterator[tuple[int, Row]]:
    return zip(batch.offsets.tolist(), batch.rows(), strict=True)


def _rows(
    consumer: Consumer, chance: random.Random, counts: Counts, end: int | None = None
) -> Iterator[tuple[int, Row]]:
    """A pass from the beginning: up to `end`, or until there is nothing for a while."""
    (source,) = consumer.assignment()
    kept = []  # batches stay what they were, whatever becomes of the files
    while batches := consumer.poll(0.05, chance.choice([1, 7, 100, 10_000])):
        for batch in batches:
            kept = [*kept[-20:], (batch, batch.values.to_pylist())]
            counts["reads"] += len(batch)
            yield from _records(batch)
        if (end is not None and consumer.position(source) >= end) or (end is None and chance.random() < 0.002):
            break
    if any(batch.values.to_pylist() != values for batch, values in kept):
        raise WrongError(f"{source}: a batch has changed after it was read")
    if end is not None and consumer.position(source) < end:
        raise WrongError(f"{source}: nothing comes after offset {consumer.position(source)}, the end was {end}")
    counts["passes"] += 1


def _check(source: TopicPartition, offset: int, row: Row) -> None:
    if row[:3] != (key_of(offset), value_of(offset), offset):
        raise WrongError(f"{source}: {row} stands at offset {offset}")


def _check_gap(log: EmbeddedLog, expected: int | None, offset: int) -> None:
    if expected is None or offset == expected:
        return
    with log.admin() as admin:
        start = admin.beginning_offsets([LOG])[LOG]
    if not expected < offset <= start:
        raise WrongError(f"log: offset {offset} where {expected} comes next, and the log starts at {start}")


# --- all together ----------------------------------------------------------------------------------------------------


def run(folder: Path, seconds: float, readers: int, seed: int) -> Counts:
    """Everything at once, in processes of their own; what they counted."""
    with open_log(folder) as log, log.admin() as admin:
        for source, config in TOPICS.items():
            admin.create_topic(source.topic, config=config)
    jobs = [(write, seed), (disturb, seed), *((read, seed + number) for number in range(1, readers // 2 + 1))]
    with multiprocessing.get_context("spawn").Pool(len(jobs)) as pool:
        ends = [pool.apply_async(job, (folder, seconds, number)) for job, number in jobs]
        return sum((end.get() for end in ends), Counts())
