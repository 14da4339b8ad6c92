"""The homes of topics that programs read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.kafka_topics import delete_everything


@pytest.fixture(params=["log", pytest.param("kafka", marks=pytest.mark.kafka)])
def home(request: Any) -> dict[str, str]:
    """The settings of a home of topics, which is empty."""
    if request.param == "log":
        return {}
    kafka = request.getfixturevalue("kafka")
    delete_everything(kafka.bootstrap_servers)
    return {"bootstrap.servers": kafka.bootstrap_servers}
