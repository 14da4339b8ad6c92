"""What several tasks hand to another one: held in memory and in a file, merged piece by piece into one order."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kstreams.kernel.batch import TopicPartition
from kstreams.processor.context.encoded_rows import EncodedRows
from kstreams.runtime.spark.exchange.blocks import Block, blocks_of, rows_of
from kstreams.runtime.spark.exchange.merged_blocks import MergedBlocks, merged, spilled
from tests.spark.written_blocks import batches_of

pytestmark = pytest.mark.spark

SOURCE = TopicPartition("t", 0)

WRITERS = st.lists(  # by writer: its blocks, each a list of stream times
    st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=6), min_size=1, max_size=6), min_size=1, max_size=5
)


def blocks_by(writers: Iterable[Iterable[list[int]]], *, sort: bool = True) -> list[Block]:
    """The blocks of some writers; keys name the writer and the place of the row."""
    made: list[Block] = []
    for origin, blocks in enumerate(writers):
        number = 0
        for times in blocks:
            offsets = np.arange(number, number + len(times))
            keys = pa.array([f"{origin}-{offset}".encode() for offset in offsets], pa.binary())
            stream_times = pa.array(sorted(times) if sort else times, pa.int64())
            rows = EncodedRows(keys, keys, stream_times, stream_times=stream_times)
            made += blocks_of("t", origin, offsets, rows, np.zeros(len(times), np.int64))
            number += len(times)
    return made


@given(WRITERS, st.integers(1, 9), st.randoms(use_true_random=False))
def test_blocks_are_merged_as_if_all_rows_were_sorted_at_once(writers, rows_ahead: int, random) -> None:
    blocks = blocks_by(writers)
    (whole,) = batches_of(rows_of(blocks))
    pieces = list(MergedBlocks(SOURCE, blocks, rows_ahead))
    assert [key for piece in pieces for key in piece.keys.to_pylist()] == whole.keys.to_pylist()
    assert all(len(piece) for piece in pieces)
    random.shuffle(blocks)
    (again,) = merged(blocks).values()
    assert [key for piece in again for key in piece.keys.to_pylist()] == whole.keys.to_pylist()


@given(WRITERS, st.integers(1, 9))
def test_the_rows_of_one_writer_keep_their_order_where_its_rounds_go_back_in_time(writers, rows_ahead: int) -> None:
    blocks = blocks_by(writers, sort=False)
    (whole,) = batches_of(rows_of(blocks))
    found = [key for piece in MergedBlocks(SOURCE, blocks, rows_ahead) for key in piece.keys.to_pylist()]
    assert found == whole.keys.to_pylist()


def test_no_more_rows_are_decoded_than_are_wanted_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []
    content = Block.content
    monkeypatch.setattr(Block, "content", lambda block: decoded.append(block) or content(block))
    blocks = blocks_by([[[time] * 10 for time in range(100)] for _ in range(2)])
    pieces = iter(MergedBlocks(SOURCE, blocks, buffered_rows=20))
    assert sum(len(next(pieces)) for _ in range(3)) < 100
    assert len(decoded) < 15


def test_the_rows_beyond_a_size_lie_in_a_file_and_may_be_read_twice(tmp_path: Path) -> None:
    blocks = blocks_by([[[1, 2], [3], [4, 5, 6], [7]]])
    report = Block("", 0, 0, 0, 0, b"said")
    call = report._replace(rows=None)
    given = [*blocks[:2], call, *blocks[2:], report, call]
    kept = spilled(iter(given), tmp_path / "new", memory_bytes=1)
    assert [(block[:5], block.rows and bytes(block.rows)) for block in kept] == [
        (block[:5], block.rows and bytes(block.rows)) for block in given
    ]
    records = merged(block for block in kept if block.topic)[SOURCE]
    for _ in range(2):
        assert [key for piece in records for key in piece.keys.to_pylist()] == [f"0-{at}".encode() for at in range(7)]


def test_the_file_goes_with_the_blocks(tmp_path: Path) -> None:
    def mapped() -> bool:
        return any(str(tmp_path) in line for line in Path(f"/proc/{os.getpid()}/maps").read_text().splitlines())

    kept = spilled(iter(blocks_by([[[1], [2], [3]]])), tmp_path, memory_bytes=1)
    assert mapped()
    assert not list(tmp_path.iterdir())
    del kept
    gc.collect()
    assert not mapped()


def test_small_steps_make_no_file(tmp_path: Path) -> None:
    assert len(spilled(iter(blocks_by([[[1], [2]]])), tmp_path / "none")) == 2
    assert not (tmp_path / "none").exists()
