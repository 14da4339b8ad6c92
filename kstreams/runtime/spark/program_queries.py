"""`ProgramQuery`: the streaming query of one sink, which executes the text of a PySpark program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

from kstreams.errors import LogError
from kstreams.runtime.spark.batch_measures import BatchMeasures
from kstreams.runtime.spark.code.execution import Functions, SinkProgram
from kstreams.runtime.spark.code.program import SESSION
from kstreams.runtime.spark.query import ExactlyOnceSteps, StepQuery
from kstreams.runtime.spark.relational.idle_input import IdleInput
from kstreams.runtime.spark.relational.partition_clocks import PartitionClocks
from kstreams.runtime.spark.steps import NO_STEP

_CATALYST = "org.apache.spark.sql.catalyst.optimizer"
_UNMOVED_FILTERS = {
    "spark.sql.optimizer.excludedRules": f"{_CATALYST}.PushDownPredicates,{_CATALYST}.PushPredicateThroughNonJoin"
}
"""With these settings no filter moves before a watermark, where it would remove the rows of clocks."""

OnBatch = Callable[[StreamingQueryProgress], None]
"""Called with what Spark reports of each batch."""


class ProgramQuery:
    """The query of one sink of a topology.

    Parameters
    ----------
    session : SparkSession
    program : SinkProgram
    readers : Functions
        The functions by which the program reads.
    query : callable
        Returns a query for the records of the sink and an output mode.
    steps : ExactlyOnceSteps
        The steps of the query.
    clocks : PartitionClocks or None
        None if no operator waits for the end of the input.
    idle : IdleInput or None
        None if no partition is ever idle.
    has_input : callable
        Returns True if there are records that the query has not read.
    on_batch : callable
    """

    def __init__(
        self,
        session: SparkSession,
        program: SinkProgram,
        readers: Functions,
        query: Callable[[DataFrame, str], StepQuery],
        steps: ExactlyOnceSteps,
        *,
        clocks: PartitionClocks | None,
        idle: IdleInput | None,
        has_input: Callable[[], bool],
        on_batch: OnBatch,
    ) -> None:
        self._session = session
        self._program = program
        self._readers = readers
        self._query = query
        self._steps = steps
        self._clocks = clocks
        self._idle = idle
        self._has_input = has_input
        self._on_batch = on_batch
        self._running = list[StepQuery]()
        self._last_batch = -1
        self._open_rows = 0

    @property
    def open_rows(self) -> int:
        """The number of rows in Spark's state whose results wait until the watermark has passed them."""
        return 0 if self._clocks is None else self._open_rows

    def start(self, *, bounded: bool, pause_ms: int) -> None:
        """Start the query. A bounded query ends where its topics end now.

        Raises
        ------
        LogError
            If an earlier run has closed all windows, and there are records after its end.
        """
        is_ended = self._clocks is not None and self._clocks.is_at_the_end
        if is_ended and self._has_input():
            raise LogError(
                "This query was run until the end of its input, so every row that comes later would be late: "
                "run with --reset to start anew, or with spark.kstreams.path=auto."
            )

        def write(records: DataFrame, mode: str) -> None:
            query = self._query(records, mode)
            query.start(bounded=bounded, pause_ms=pause_ms)
            self._running.append(query)

        with settings_of_session(
            self._session, SESSION | (_UNMOVED_FILTERS if is_ended or self._idle is not None else {})
        ):
            self._program.execute(self._session, self._readers, write)

    def end_input(self) -> None:
        """Emit all open windows and rows without a match, unless there was no input."""
        clocks = self._clocks
        if clocks is None or clocks.is_at_the_end or self._steps.sink.last_step().number == NO_STEP:
            return
        clocks.end(self._steps.sink.positions())
        self.start(bounded=True, pause_ms=0)
        while not self.ended(_SECONDS):
            pass

    def ended(self, seconds: float) -> bool:
        """Wait at most `seconds`, and return True if the query has ended. Raises the error that ended it."""
        if not self._running:
            return False
        query = self._running[-1]
        try:
            return query.ended(seconds)
        finally:
            self._follow(query)

    def batches(self) -> dict[str, BatchMeasures]:
        """Return the measures of the last batch, by the name of the query; empty before the first batch."""
        return self._running[-1].batches() if self._running else {}

    def stop(self) -> None:
        """End the query, also within a step, and close its sink."""
        for query in self._running:
            query.stop()
        self._steps.sink.close()

    def _follow(self, query: StepQuery) -> None:
        """Report the batches that have ended, and move the clocks of idle partitions."""
        for progress in query.progress_after(self._last_batch):
            self._last_batch = progress.batchId
            self._open_rows = sum(state.numRowsTotal for state in progress.stateOperators)
            self._on_batch(progress)
            if self._idle is not None:
                self._idle.follow(progress)
        if self._idle is not None:
            self._idle.move_clocks()


_SECONDS = 1.0


@contextmanager
def settings_of_session(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set settings of a session for a block. A query keeps those with which it starts."""
    before = {name: session.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value)
