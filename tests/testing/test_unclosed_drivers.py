"""Drivers that a test does not close: many of them in one process, as in the tests of a large application."""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path

import pytest

import kstreams as ks
from kstreams.testing import TopologyTestDriver


def counts() -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream("words", key=str, value=str).group_by_key().count("counts").to_stream().to("counted")
    return builder.build()


def used(topology: ks.Topology) -> None:
    driver = TopologyTestDriver(topology, {"statestore.cache.max.bytes": 0})
    driver.create_input_topic("words", key=str, value=str).pipe_input("a", "x")


def open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.slow
def test_a_driver_that_nobody_uses_any_more_leaves_no_file_open() -> None:
    topology = counts()
    used(topology)
    before = open_files()
    for _ in range(5):
        used(topology)
    assert open_files() == before


def test_its_stores_are_closed_before_their_folder_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    on_disk: list[list[Path]] = []
    remove = shutil.rmtree

    def note(folder: str) -> None:
        on_disk.append([*Path(folder).rglob("*.sst")])
        remove(folder)

    gc.collect()  # drivers of other tests
    monkeypatch.setattr(shutil, "rmtree", note)
    used(counts())
    gc.collect()
    assert len(on_disk) == 1  # the folder of its only task
    assert (
        on_disk[0] != []
    )  # RocksDB has flushed: without its folder it tries again a second later, and everything waits
