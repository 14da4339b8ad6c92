"""An application on Spark over its quotas gives the answer of one without quotas."""

from __future__ import annotations

from pathlib import Path

import pytest

from kstreams.log import open_log
from tests.spark.running import Application
from tests.spark.word_count import COUNTS, LINES, WORD_TYPES, word_count

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_steps_that_are_delayed_count_once(spark, tmp_path: Path) -> None:
    settings = {"spark.kstreams.max.records": 2}
    words = Application(spark, tmp_path, word_count(), WORD_TYPES, **settings).create("lines").write(LINES)
    with open_log(words.folder / "log") as log, log.admin() as admin:
        admin.alter_client_quotas("app", {"producer_byte_rate": 40, "consumer_byte_rate": 20})
    words.run()
    assert words.table("counts") == COUNTS
    assert len(words.rows("counts")) == sum(COUNTS.values())
    names = sorted(path.name.partition(".")[2] for path in (words.folder / "log" / "quotas").iterdir())
    assert names == ["consumer_byte_rate", "producer_byte_rate"]
