"""Input that was deleted before Spark read it: an error where state depends on it, else counted, as natively."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark


def counted() -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    counts = builder.stream("in", key=str, value=str).group_by(lambda key, value: value, key=str).count()
    counts.to_stream().to("out")
    return builder


@pytest.fixture
def behind(spark: Any, tmp_path: Path) -> Application:
    """An application that has read 3 records, and 2 of the next 5 were deleted since."""
    app = Application(spark, tmp_path, counted(), {"in": (str, str), "out": (str, int)}).create("in", partitions=1)
    app.write([Row("in", "k", "v", time) for time in range(3)]).run(until_end=False)
    app.write([Row("in", "k", "v", time) for time in range(3, 8)])
    with open_log(tmp_path / "log") as log, log.admin() as admin:
        admin.delete_records({TopicPartition("in", 0): 5})
    return app


def test_with_state_behind_it_the_run_ends_with_both_offsets(behind: Application) -> None:
    with pytest.raises(LogError, match=r"in-0 was deleted up to offset 5, .* read it only up to offset 3"):
        behind.run(until_end=False)


def test_where_the_user_decided_the_records_count_as_dropped(behind: Application) -> None:
    progress = behind.run(until_end=False, **{"consumer.auto.offset.reset": "earliest"})
    assert list(progress.dropped.values()) == [2]
    assert progress.records_in == 3
    assert behind.table("out") == {"v": 6}
