"""A topic that is deleted while it is read ends the application with one sentence, and no stack trace."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import UnknownTopicError
from kstreams.runtime.native import engine
from kstreams.runtime.native.lifecycle import State
from tests.native.world import WAIT_S, World


def counted() -> ks.Topology:
    builder = ks.StreamsBuilder()
    words = builder.stream("in", key=str, value=str)
    words.to("out")
    words.group_by(lambda key, value: value, key=str).count().to_stream().to("counts", value=int)
    return builder.build()


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_one_sentence_names_the_topic(world: World, caplog: pytest.LogCaptureFixture, guarantee: str) -> None:
    world.create("in")
    world.write("in", [("k", "v", 1)])
    streams = world.streams(counted(), processing_guarantee=guarantee, commit_interval_ms=10)
    streams.start()
    deadline = time.monotonic() + WAIT_S
    while not streams.progress().records_out["counts"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with world.log() as log, log.admin() as admin:
        admin.delete_topic("in")
    with pytest.raises(UnknownTopicError, match="'in'"):
        streams.wait(WAIT_S)
    assert streams.state is State.ERROR
    assert [record for record in caplog.records if record.exc_info] == []
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] != []
    assert streams.progress().records_in == 1


def test_the_engine_tells_of_the_topic_while_it_reports_progress(world: World) -> None:
    """The lag of a topic that has gone cannot be asked for; the error is that of the thread."""
    world.create("in")
    world.write("in", [("k", "v", 1)])
    deleted = []

    def on_progress(progress: Any) -> None:
        if progress.records_in and not deleted:
            deleted.append(progress)
            with world.log() as log, log.admin() as admin:
                admin.delete_topic("in")

    with pytest.raises(UnknownTopicError, match="'in'"):
        engine.run(counted(), ks.Config.of(world.settings), on_progress=on_progress)
