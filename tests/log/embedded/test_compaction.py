"""Compaction keeps the last value of each key at its offset, and deletes deleted keys in time."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kstreams.kernel.batch import Row, TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.log import EmbeddedLog, open_log, verify
from tests.log.contract.reading import drain, rows_of
from tests.log.embedded.files import indexes, segments

SOURCE = TopicPartition("table", 0)
START = 1_000_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def log(tmp_path: Path, clock: ManualClock) -> EmbeddedLog:
    return open_log(tmp_path, clock=clock)


def create(log: EmbeddedLog, **config: object) -> None:
    settings = {"cleanup.policy": "compact", "segment.bytes": "1024", "segment.ms": "1000"}
    settings |= {key.replace("_", "."): str(value) for key, value in config.items()}
    log.admin().create_topic("table", config=settings)


def write(log: EmbeddedLog, *pairs: tuple[str, str | None], flush_each: int = 3, **settings: object) -> None:
    with log.producer({"linger.ms": -1, **settings}) as producer:
        for i, (key, value) in enumerate(pairs):
            producer.send("table", key.encode(), None if value is None else value.encode(), headers=[("i", b"%d" % i)])
            if i % flush_each == 0:
                producer.flush()


def seal(log: EmbeddedLog, clock: ManualClock) -> None:
    """Let the active segment's time be over, and clean."""
    clock.advance(1_000)
    log.clean()


def read(log: EmbeddedLog) -> list[tuple[int, str, str | None]]:
    with log.consumer() as consumer:
        consumer.assign([SOURCE])
        consumer.seek_to_beginning()
        found = []
        while batches := consumer.poll():
            for batch in batches:
                for offset, row in zip(batch.offsets.tolist(), batch.rows(), strict=True):
                    found.append((offset, (row.key or b"").decode(), None if row.value is None else row.value.decode()))
        return found


def test_the_last_value_of_each_key_stays_where_it_was(log: EmbeddedLog, clock: ManualClock, tmp_path: Path) -> None:
    create(log)
    write(log, *[(f"k{i % 5}", f"v{i}") for i in range(100)])
    seal(log, clock)
    assert read(log) == [(i, f"k{i % 5}", f"v{i}") for i in range(95, 100)]
    assert verify(tmp_path) == []
    assert log.admin().end_offsets([SOURCE]) == {SOURCE: 100}


def test_skimming_counts_only_what_stayed(log: EmbeddedLog, clock: ManualClock) -> None:
    create(log)
    write(log, *[(f"k{i % 5}", f"v{i}") for i in range(100)])
    seal(log, clock)
    with log.consumer() as consumer:
        for start, end in ((0, 100), (0, 97), (96, 100), (97, 98)):
            consumer.assign([SOURCE])
            consumer.seek(SOURCE, start)
            spans = list(iter(lambda until=end: consumer.skim(SOURCE, until), None))
            assert sum(span.records for span in spans) == end - max(start, 95)
            assert consumer.position(SOURCE) == end


def test_the_active_segment_is_left_alone(log: EmbeddedLog, tmp_path: Path) -> None:
    create(log, segment_bytes=100_000)
    write(log, ("k", "1"), ("k", "2"))
    log.clean()
    assert read(log) == [(0, "k", "1"), (1, "k", "2")]


def test_headers_and_timestamps_stay_with_the_record(log: EmbeddedLog, clock: ManualClock) -> None:
    create(log)
    write(log, ("a", "1"), ("b", "2"), ("a", "3"))
    seal(log, clock)
    assert rows_of(log, "table") == [Row(b"b", b"2", START, (("i", b"1"),)), Row(b"a", b"3", START, (("i", b"2"),))]


def test_small_segments_become_one(log: EmbeddedLog, clock: ManualClock, tmp_path: Path) -> None:
    create(log, segment_bytes=8192, min_compaction_lag_ms=500)
    write(log, *[(f"k{i % 3}", f"v{i}") for i in range(999)])
    before = len(segments(tmp_path, "table"))
    seal(log, clock)
    write(log, ("k0", "again"))
    seal(log, clock)
    assert len(segments(tmp_path, "table")) < before / 5
    assert [value for _, _, value in read(log)] == ["v997", "v998", "again"]
    assert verify(tmp_path) == []


def test_a_deleted_key_is_seen_deleted_for_a_while_and_then_gone(log: EmbeddedLog, clock: ManualClock) -> None:
    create(log, delete_retention_ms=10_000)
    write(log, ("a", "1"), ("b", "1"), ("a", None))
    seal(log, clock)
    assert read(log) == [(1, "b", "1"), (2, "a", None)]
    clock.advance(9_000)
    log.clean()
    assert read(log) == [(1, "b", "1"), (2, "a", None)]
    clock.advance(2_000)
    log.clean()
    assert read(log) == [(1, "b", "1")]
    assert log.admin().end_offsets([SOURCE]) == {SOURCE: 3}


def test_a_key_that_comes_back_after_its_deletion_stays(log: EmbeddedLog, clock: ManualClock) -> None:
    create(log, delete_retention_ms=0)
    write(log, ("a", "1"), ("a", None), ("a", "2"))
    seal(log, clock)
    log.clean()
    assert read(log) == [(2, "a", "2")]


def test_everything_may_go(log: EmbeddedLog, clock: ManualClock, tmp_path: Path) -> None:
    create(log, delete_retention_ms=0)
    write(log, ("a", "1"), ("a", None))
    for _ in range(2):
        seal(log, clock)
    assert read(log) == []
    write(log, ("b", "1"))
    assert read(log) == [(2, "b", "1")]
    assert verify(tmp_path) == []


def test_young_records_are_left_alone(log: EmbeddedLog, clock: ManualClock) -> None:
    create(log, min_compaction_lag_ms=60_000)
    write(log, ("a", "1"), ("a", "2"))
    seal(log, clock)
    assert len(read(log)) == 2
    clock.advance(60_000)
    log.clean()
    assert read(log) == [(1, "a", "2")]


def test_open_and_aborted_transactions(log: EmbeddedLog, clock: ManualClock) -> None:
    create(log)
    identity = {"transactional.id": "app", "transaction.timeout.ms": 100_000}
    with log.producer(identity) as producer:
        for value, end in [(b"1", "commit"), (b"2", "abort"), (b"3", "open")]:
            producer.begin_transaction()
            producer.send("table", b"a", value)
            producer.send("table", value, value)
            producer.flush()
            if end == "open":
                seal(log, clock)
                assert read(log) == [(0, "a", "1"), (1, "1", "1")]
                producer.commit_transaction()
            elif end == "commit":
                producer.commit_transaction()
            else:
                producer.abort_transaction()
            seal(log, clock)
    assert read(log) == [(1, "1", "1"), (4, "a", "3"), (5, "3", "3")]


def test_a_reader_in_the_midst_goes_on(log: EmbeddedLog, clock: ManualClock) -> None:
    create(log, min_compaction_lag_ms=500)
    write(log, *[(f"k{i % 5}", f"v{i}") for i in range(100)])
    with log.consumer() as consumer:
        consumer.assign([SOURCE])
        consumer.poll(max_records=50)
        seal(log, clock)
        values = [(row.value or b"").decode() for row in drain(consumer, 7)]
    assert values[-5:] == [f"v{i}" for i in range(95, 100)]
    assert values == sorted(values, key=lambda value: int(value[1:]))


def test_a_crash_between_rename_and_removal_is_harmless(log: EmbeddedLog, clock: ManualClock, tmp_path: Path) -> None:
    create(log, segment_bytes=2048, min_compaction_lag_ms=500)
    write(log, *[(f"k{i % 3}", f"v{i}") for i in range(300)])
    old = {path: path.read_bytes() for path in segments(tmp_path, "table")}
    seal(log, clock)
    for path, raw in old.items():
        if not path.exists():
            path.write_bytes(raw)
    assert verify(tmp_path) == []
    last = {key: value for _, key, value in read(log)}
    assert last == {"k0": "v297", "k1": "v298", "k2": "v299"}
    write(log, ("k0", "again"))
    seal(log, clock)
    assert [value for _, _, value in read(log)] == ["v298", "v299", "again"]
    assert verify(tmp_path) == []


def test_indexes_of_the_old_segments_do_not_mislead(log: EmbeddedLog, clock: ManualClock, tmp_path: Path) -> None:
    create(log, segment_bytes=400_000)
    write(log, *[(f"k{i % 300}", "x" * 1000 + str(i)) for i in range(900)], flush_each=1)
    stale = {path: path.read_bytes() for path in indexes(tmp_path)}
    assert stale
    seal(log, clock)
    for path, raw in stale.items():
        if path.with_suffix(".log").exists():
            path.write_bytes(raw)
    with log.consumer() as consumer:
        consumer.assign([SOURCE])
        for offset in range(0, 900, 50):
            consumer.seek(SOURCE, offset)
            assert consumer.poll(max_records=1)[0].offsets[0] == max(offset, 600)


def test_compaction_happens_by_itself_when_segments_fill(log: EmbeddedLog, tmp_path: Path) -> None:
    create(log, segment_bytes=4096)
    write(log, *[("k", f"v{i}") for i in range(2_000)], flush_each=5)
    assert sum(path.stat().st_size for path in segments(tmp_path, "table")) < 30_000
    assert read(log)[-1] == (1_999, "k", "v1999")


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.none() | st.sampled_from("xyz")), max_size=60),
    st.integers(0, 60),
    st.integers(1, 9),
)
@settings(max_examples=15)
def test_a_table_read_from_a_compacted_topic_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str | None]], cut: int, flush_each: int
) -> None:
    clock = ManualClock(START)
    folder = tmp_path_factory.mktemp("log")
    with open_log(folder, clock=clock) as log:
        create(log, delete_retention_ms=0)
        for part in (pairs[:cut], pairs[cut:]):
            write(log, *part, flush_each=flush_each)
            seal(log, clock)
            table = {key: value for key, value in pairs[:cut] + (pairs[cut:] if part is not pairs[:cut] else [])}
        found = read(log)
        assert {key: value for _, key, value in found if value} == {key: v for key, v in table.items() if v}
        assert all(pairs[offset] == (key, value) for offset, key, value in found)
        assert verify(folder) == []
