"""Control blocks, which tasks receive next to records: the driver's command to run, and reports of upstream tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from kstreams.runtime.spark.exchange.blocks import CONTROL_TOPIC, Block

_COLUMNS = (
    f"'{CONTROL_TOPIC}' AS topic",
    "CAST(id AS INT) AS partition",
    "0L AS origin",
    "0L AS number",
    f"{-(2**62)}L AS stream_time",  # sorts before all records of the task
    "CAST(NULL AS BINARY) AS rows",
)


class ControlBlocks:
    """The control blocks of a session, which are the same in all steps.

    Parameters
    ----------
    session : SparkSession
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._frames: dict[tuple[int, int], DataFrame] = {}

    def of(self, count: int, slots: int) -> DataFrame:
        """Return one control block for every task of a sub-topology, in at most `slots` Spark partitions."""
        if (count, slots) not in self._frames:
            rows = self._session.range(0, count, 1, min(slots, count))
            self._frames[count, slots] = rows.selectExpr(*_COLUMNS)
        return self._frames[count, slots]


class TaskBlocks(NamedTuple):
    """The blocks of one partition number: whether its task runs, its records, and reports to pass on."""

    runs: bool
    records: list[Block]
    reports: list[Block]

    @classmethod
    def of(cls, blocks: Iterable[Block]) -> TaskBlocks:
        """Sort blocks by purpose. No task runs for a partition number that only an upstream sub-topology has."""
        runs = False
        records = list[Block]()
        reports = list[Block]()
        for block in blocks:
            if block.topic != CONTROL_TOPIC:
                records.append(block)
            elif block.rows is not None:
                reports.append(block)
            else:
                runs = True
        return cls(runs, records, reports)
