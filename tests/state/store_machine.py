"""What the state machines of all store kinds share: commits, clean closes, crashes and restores around a store."""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.record import Headers
from kstreams.state import Changes, StateLimits, StoreBuilder, TaskState, open_task_state
from kstreams.state.task_state import as_records, merged

FAST_DISK = "/dev/shm" if os.path.isdir("/dev/shm") else None  # a close waits for the disk, thousands of times
ROOMY, TINY = StateLimits(), StateLimits(live_max_bytes=300)


def image_of_a_moment(directory: Path) -> Path:
    """A copy of files between which nothing changed: RocksDB compacts and deletes in threads of its own."""
    while True:
        image = Path(tempfile.mkdtemp(prefix="kstreams-state-", dir=FAST_DISK))
        with suppress(OSError):  # a file that was listed is gone: shutil.Error is one too
            before = _listing(directory)
            shutil.copytree(directory, image, dirs_exist_ok=True)
            if _listing(directory) == before:
                return image
        shutil.rmtree(image)


def _listing(directory: Path) -> list[tuple[Path, int, int]]:
    files = ((path, path.stat()) for path in directory.rglob("*"))
    return sorted((path, found.st_size, found.st_mtime_ns) for path, found in files)


def batch_of(builder: StoreBuilder, changes: Changes, base_offset: int) -> Batch:
    """Changelog records as they are read back from a topic."""
    records = as_records(builder, TopicPartition("changelog", 0), changes)
    records.offsets = np.arange(base_offset, base_offset + len(changes), dtype=np.int64)
    return records


def headers_for(number: int) -> Headers:
    """Headers of a value: none, several, two of a name, one without a value."""
    return ((), (("n", b"1"),), (("n", b"1"), ("n", b""), ("\xfc", None)))[number % 3]


def _fold(changelog: list[Changes]) -> dict[bytes, bytes]:
    """The last value of every key: what a compacted topic, or a reader of it, is left with."""
    rows = (row for changes in changelog for row in zip(*(column.to_pylist() for column in changes[:2]), strict=True))
    return {key: value for key, value in dict(rows).items() if value is not None}


class StoreMachine(RuleBasedStateMachine):
    """A store beside a plain model of it. A kind says how to read both and adds its own operations."""

    builder: ClassVar[StoreBuilder]
    durable: ClassVar[bool] = False
    keep_all: ClassVar[bool] = False
    key_is_place: ClassVar[bool] = True  # a key has one value at a time, in the store and in its changelog
    limits: ClassVar[StateLimits] = ROOMY

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="kstreams-state-", dir=FAST_DISK)) if self.durable else None
        self.model = self.committed = self.new_model()
        self.model = copy.deepcopy(self.committed)
        self.changelog: list[Changes] = []
        self.pending: tuple[dict[str, Changes], Any] | None = None
        self.open()

    def new_model(self) -> Any:
        raise NotImplementedError

    def contents(self, store: Any) -> Any:
        raise NotImplementedError

    def expected(self) -> Any:
        raise NotImplementedError

    def open(self) -> None:
        self.state = self.opened(self.directory)
        self.store = self.state.stores[self.builder.name]

    def opened(self, directory: Path | None) -> TaskState:
        return open_task_state([self.builder], directory, limits=self.limits, keep_all=self.keep_all)

    def offset(self) -> int:
        return sum(map(len, self.changelog))

    @precondition(lambda self: self.pending is None)
    @rule()
    def begin_commit(self) -> None:
        changes = self.state.changes(7)
        if self.builder.name in changes:
            self.changelog.append(changes[self.builder.name])
        self.pending = changes, copy.deepcopy(self.model)

    @precondition(lambda self: self.pending is not None)
    @rule()
    def finish_commit(self) -> None:
        assert self.pending is not None
        changes, self.committed = self.pending
        self.state.persist(changes, {self.builder.name: self.offset()})
        self.pending = None
        assert self.state.changelog_offset(self.builder.name) == self.offset()

    def commit(self) -> None:
        if self.pending is not None:
            self.finish_commit()
        self.begin_commit()
        self.finish_commit()
        assert self.state.num_bytes_pending() == 0

    @rule()
    def reopen_after_commit(self) -> None:
        self.commit()
        self.reopen()

    @precondition(lambda self: self.pending is None)
    @rule()
    def reopen_without_commit(self) -> None:
        self.model = copy.deepcopy(self.committed)
        self.reopen()

    def reopen(self) -> None:
        self.state.close()
        self.open()
        if self.durable:
            assert self.state.changelog_offset(self.builder.name) in (self.offset() or None, self.offset())
        else:
            self.replay(self.state, 0)
        self.same()

    @precondition(lambda self: self.durable and self.pending is None)
    @rule()
    def a_killed_process_left_a_committed_prefix(self) -> None:
        """What the files hold at any moment is what a SIGKILL leaves: there is no log of writes in memory."""
        assert self.directory is not None
        image = image_of_a_moment(self.directory)
        after = self.opened(image)
        self.replay(after, after.changelog_offset(self.builder.name) or 0)
        self.model, present = self.committed, self.model
        assert self.contents(after.stores[self.builder.name]) == self.expected()
        self.model = present
        after.close()
        shutil.rmtree(image)

    def replay(self, state: Any, offset: int) -> None:
        """The changelog from an offset on, which is one at which a commit ended."""
        end = 0
        for changes in self.changelog:
            start, end = end, end + len(changes)
            if start >= offset:
                state.restore(self.builder.name, batch_of(self.builder, changes, start))
            else:
                assert end <= offset

    @rule()
    def same(self) -> None:
        assert self.contents(self.store) == self.expected()

    @rule()
    def the_changelog_gives_the_same_store(self) -> None:
        self.commit()
        self.equals_when_restored(self.changelog)

    @rule(at=st.integers(0, 40))
    def what_is_merged_of_the_changelog_gives_the_same_store(self, at: int) -> None:
        """Merged at once, or a part first and then that with the rest."""
        self.commit()
        if self.changelog:
            first, rest = self.changelog[:at], self.changelog[at:]
            self.equals_when_restored(
                [merged(self.builder, [*([merged(self.builder, first)] if first else []), *rest])]
            )

    @precondition(lambda self: self.key_is_place)
    @rule()
    def the_fold_of_the_changelog_holds_the_store(self) -> None:
        """What has expired may still be in the changelog; nothing of the store is missing there, or different."""
        self.commit()
        dumped = _fold([self.state.dump(self.builder.name)])
        assert dumped.items() <= _fold(self.changelog).items()

    @rule()
    def a_dump_gives_the_same_store(self) -> None:
        self.equals_when_restored([self.state.dump(self.builder.name)])

    def equals_when_restored(self, changelog: list[Changes]) -> None:
        directory = Path(tempfile.mkdtemp(prefix="kstreams-state-", dir=FAST_DISK)) if self.durable else None
        other = self.opened(directory)
        offset = 0
        for changes in changelog:
            other.restore(self.builder.name, batch_of(self.builder, changes, offset))
            offset += len(changes)
        other.observe(self.state.observed())
        self.is_as_expected(other.stores[self.builder.name])
        other.close()
        if directory is not None:
            shutil.rmtree(directory)

    def is_as_expected(self, restored: Any) -> None:
        assert self.contents(restored) == self.expected()

    def teardown(self) -> None:
        self.state.close()
        if self.directory is not None:
            shutil.rmtree(self.directory)


# a database is opened many times per example: the quick run takes a few of them, `slow` the rest
DEPTHS: dict[str, Any] = {
    "": (
        {
            "Memory": settings(max_examples=12, stateful_step_count=40),
            "RocksDb": settings(max_examples=2, stateful_step_count=40),
            "RocksDbUnderPressure": settings(max_examples=3, stateful_step_count=40),
        },
        [],
    ),
    "Long": (defaultdict(lambda: settings(max_examples=30, stateful_step_count=50)), [pytest.mark.slow]),
}
LAYERS: dict[str, dict[str, Any]] = {
    "Memory": {"durable": False},
    "RocksDb": {"durable": True},
    "RocksDbUnderPressure": {"durable": True, "limits": TINY},
}


def cases_of(machine: type[StoreMachine], builders: dict[str, StoreBuilder]) -> dict[str, Any]:
    """One test case per layer and builder, to be put among a module's globals."""
    cases = {}
    for layer, how in LAYERS.items():
        for variant, builder in builders.items():
            name = f"Test{layer}{variant}"
            for depth, (settings_of_depth, marks) in DEPTHS.items():
                case = type(name + depth, (machine,), {**how, "builder": builder}).TestCase  # type: ignore[attr-defined]
                case.settings, case.pytestmark = settings_of_depth[layer], marks
                cases[name + depth] = case
    return cases
