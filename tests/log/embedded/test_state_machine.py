"""Whatever is done in whatever order, the log reads as the list that a child would keep."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.log import Consumer, EmbeddedLog, Producer, open_log, verify
from tests.log.embedded.files import head, indexes

SOURCE = TopicPartition("words", 0)
KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
VALUES = st.none() | st.binary(max_size=40)
Written = tuple[int, bytes | None, bytes | None]


class LogMachine(RuleBasedStateMachine):
    """The model: every visible record ever written, by offset, and where the log starts."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = ManualClock(10_000)
        self.model: list[Written] = []
        self.pending: list[Written] = []
        self.start = self.end = 0
        self.position: int | None = None
        self.in_transaction = False
        self.compacted = False
        self.log: EmbeddedLog
        self.producer: Producer
        self.consumer: Consumer

    @initialize(compacted=st.booleans(), compression=st.sampled_from(["none", "lz4"]))
    def create(self, compacted: bool, compression: str) -> None:
        self.compacted = compacted
        policy = "compact" if compacted else "delete"
        self.config = {
            "cleanup.policy": policy,
            "segment.bytes": "2500",
            "segment.ms": "5000",
            "delete.retention.ms": "0",
        }
        with open_log(self.folder, clock=self.clock) as log:
            log.admin().create_topic("words", config={**self.config, "compression.type": compression})
        self._open()

    def _open(self) -> None:
        self.log = open_log(self.folder, clock=self.clock)
        self.producer = self.log.producer({"linger.ms": -1, "transactional.id": "m", "transaction.timeout.ms": 10**9})
        self.consumer = self.log.consumer()
        self.consumer.assign([SOURCE])
        self.position = None

    def _write(self, rows: list[Row], as_batch: bool) -> None:
        if as_batch:
            self.producer.send_batch(Batch.of_rows(SOURCE, rows))
        else:
            for row in rows:
                self.producer.send("words", row.key, row.value, timestamp=row.timestamp)
        self.producer.flush()
        self.pending += [(self.end + i, row.key, row.value) for i, row in enumerate(rows)]
        self.end += len(rows)

    @rule(
        rows=st.lists(st.builds(Row, KEYS, VALUES, st.just(0), st.just(())), min_size=1, max_size=12),
        batch=st.booleans(),
    )
    def produce(self, rows: list[Row], batch: bool) -> None:
        if not self.in_transaction:
            self.producer.begin_transaction()
        self._write(rows, batch)
        if not self.in_transaction:
            self.producer.commit_transaction()
            self._settle(keep=True)

    @precondition(lambda self: not self.in_transaction)
    @rule()
    def begin(self) -> None:
        self.producer.begin_transaction()
        self.in_transaction = True

    @precondition(lambda self: self.in_transaction)
    @rule(commit=st.booleans())
    def finish(self, commit: bool) -> None:
        self.producer.commit_transaction() if commit else self.producer.abort_transaction()
        self._settle(keep=commit)

    def _settle(self, keep: bool) -> None:
        self.model += self.pending if keep else []
        self.pending, self.in_transaction = [], False

    @rule(maximum=st.integers(1, 30))
    def poll(self, maximum: int) -> None:
        found = [
            (offset, row.key, row.value)
            for batch in self.consumer.poll(max_records=maximum)
            for offset, row in zip(batch.offsets.tolist(), batch.rows(), strict=True)
        ]
        position = max(self.start if self.position is None else self.position, self.start)
        expected = [record for record in self.model if record[0] >= position]
        if self.compacted:
            assert set(found) <= set(expected)
            assert found == sorted(found)
        else:
            assert found == expected[:maximum]
        self.position = self.consumer.position(SOURCE)
        assert not found or self.position > found[-1][0]

    @rule(share=st.floats(0, 1))
    def seek(self, share: float) -> None:
        self.position = int(share * self.end)
        self.consumer.seek(SOURCE, self.position)

    @rule(milliseconds=st.integers(0, 6_000))
    def clean(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        self.log.clean()

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        offset = int(share * self.end)
        self.log.admin().delete_records({SOURCE: offset})
        self.start = max(self.start, offset)
        self.model = [record for record in self.model if record[0] >= self.start]

    @rule()
    def reopen(self) -> None:
        self._close()
        self._open()
        self._settle(keep=False)

    @rule()
    def crash(self) -> None:
        """A new process takes over while the old one never says goodbye."""
        self._open()
        self._settle(keep=False)

    @rule()
    def lose_indexes(self) -> None:
        for path in indexes(self.folder):
            path.unlink()

    @precondition(lambda self: hasattr(self, "log"))
    @rule()
    def lose_head(self) -> None:
        head(self.folder).write_bytes(b"")

    @invariant()
    def reads_as_the_model(self) -> None:
        if not hasattr(self, "log"):
            return
        with self.log.consumer() as consumer:
            consumer.assign([SOURCE])
            found: list[Written] = []
            while batches := consumer.poll():
                for batch in batches:
                    rows = zip(batch.offsets.tolist(), batch.rows(), strict=True)
                    found += [(offset, row.key, row.value) for offset, row in rows]
        if self.compacted:
            assert set(found) <= set(self.model)
            assert found == sorted(found, key=lambda record: record[0])
            assert self._table(found) == self._table(self.model)
        else:
            assert found == self.model

    def _table(self, records: list[Written]) -> dict[bytes | None, bytes]:
        return {key: value for key, value in {key: value for _, key, value in records}.items() if value is not None}

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.admin().end_offsets([SOURCE])
            assert verify(self.folder) == []
            self._close()
        shutil.rmtree(self.folder)

    def _close(self) -> None:
        self.consumer.close()
        self.producer.close()
        self.log.close()


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
