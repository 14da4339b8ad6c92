"""What operators pass on is counted, in columns as record by record."""

from __future__ import annotations

from typing import Any

import pytest

import kstreams as ks
from kstreams import value
from kstreams.config import Config
from kstreams.kernel.clock import ManualClock
from kstreams.processor.context.application import Application
from kstreams.processor.task.task import Task, TaskResources
from kstreams.state import open_task_state
from kstreams.testing.driver import DriverTopics
from tests.processor.test_task import IN, batch, builder_of

ROWS = batch(*((f"k{i % 7}", "x" * (i % 50), i) for i in range(5_000)))


def forwarded(use: Any, **settings: Any) -> dict[tuple[str, str], int]:
    """What the operators of one task pass on when it processes `ROWS`."""
    (part,) = builder_of(use).build().sub_topologies
    config = Config.of({"application.id": "app", "metrics.recording.level": "DEBUG", **settings})
    resources = TaskResources(
        open_task_state(part.stores), DriverTopics(is_input=lambda topic: False, enqueue=lambda batch: None)
    )
    task = Task(part, IN.partition, Application.of(config, ManualClock()), resources)
    task.process(ROWS)
    task.flush()
    return dict(task.forwarded)


def chain(stream: ks.KStream[str, str]) -> None:
    some = stream.filter(value > "x" * 9, name="some")
    few = some.filter(value > "x" * 39, name="few")
    few.map_values(lambda text: text + "!", value=str, name="mark").to("out", name="write")
    some.group_by_key().count(name="count").to_stream(name="counts").to("counts", name="tell")


@pytest.mark.parametrize("columns_min_rows", [1, 1_000_000])
def test_in_columns_as_record_by_record(columns_min_rows: int) -> None:
    found = forwarded(chain, **{"columns.min.rows": columns_min_rows})
    assert found == {
        ("some", "few"): 4_000,
        ("few", "mark"): 1_000,
        ("mark", "write"): 1_000,
        ("some", "count"): 4_000,
        ("count", "counts"): 7,
        ("counts", "tell"): 7,
    }


def test_nothing_is_counted_at_info() -> None:
    assert forwarded(chain, **{"metrics.recording.level": "INFO"}) == {}
