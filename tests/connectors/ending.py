"""How a connector ends that no retry would heal."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Timer

import pytest

from kstreams.connectors import Sink, Source
from kstreams.connectors.worker import Worker
from kstreams.errors import ConnectorError
from tests.connectors.running import copy_in, log_with_topics, worker_of, worker_to
from tests.connectors.systems import Numbered

_PATIENCE_S = 30.0
"""After this time, a connector that is tried again and again is stopped, and the test fails."""


def assert_sink_ends(folder: Path, sink: Sink, message: str) -> None:
    """A worker with rows for the sink ends with an error whose text matches, at the first attempt."""
    with log_with_topics(folder, partitions=1) as log, ExitStack() as resources:
        copy_in(log, Numbered(3, ["a"]))
        _assert_ends(worker_to(log, sink, resources), message)


def assert_source_ends(folder: Path, source: Source, message: str) -> None:
    """A worker of the source ends with an error whose text matches, at the first attempt."""
    with log_with_topics(folder, partitions=1) as log:
        _assert_ends(worker_of(log, source), message)


def _assert_ends(worker: Worker, message: str) -> None:
    stop = Event()
    timer = Timer(_PATIENCE_S, stop.set)
    timer.start()
    try:
        with pytest.raises(ConnectorError) as caught:
            worker.run(stop)
    finally:
        timer.cancel()
    assert re.search(message, str(caught.value)), str(caught.value)
    assert "secret" not in str(caught.value)
    assert all(status.retries == 0 for status in worker.statuses().values())
