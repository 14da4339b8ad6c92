"""Plans of steps as files under the checkpoint: written before a step runs, so that it runs again just the same."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from pyarrow import fs

from kstreams.batch import TopicPartition
from kstreams.private import make_private_on
from kstreams.runtime.spark.io.rows import Offsets
from kstreams.runtime.spark.steps import NO_STEP, Step


class GlobalTable(NamedTuple):
    """How far a global table was read for a step, and which step made that state."""

    step: int
    offsets: Offsets


class StepPlan(msgspec.Struct, frozen=True):
    """What is decided before a step runs: the step before it, its wall-clock time, the state of global tables.

    And which source partitions are `behind` (see `Step`).

    The number of its rounds is added when it has run.
    """

    parent: int
    now_ms: int
    globals: dict[int, GlobalTable] = {}
    behind: list[TopicPartition] = []
    rounds: dict[int, int] = msgspec.field(name="turns", default_factory=dict)

    def step(self, number: int, before: StepPlan | None) -> Step:
        """The step as the workers get it; `before` is the plan of its parent."""
        made_by = {sub: table.step for sub, table in self.globals.items()}
        rounds = {} if before is None else before.rounds
        behind = frozenset(self.behind)
        return Step(number, self.parent, self.now_ms, bool(number % 2), made_by, rounds, behind=behind)


class StepPlans:
    """The plans of one application.

    Parameters
    ----------
    checkpoint : str
        Absolute path or URI.
    """

    def __init__(self, checkpoint: str) -> None:
        self._fs, root = fs.FileSystem.from_uri(checkpoint)
        self._folder = f"{root}/steps"

    def get(self, step: int) -> StepPlan | None:
        """The plan of a step, if one was made."""
        if step == NO_STEP or self._fs.get_file_info(self._path(step)).type != fs.FileType.File:
            return None
        with self._fs.open_input_file(self._path(step)) as file:
            return msgspec.json.decode(file.read(), type=StepPlan)

    def put(self, step: int, plan: StepPlan) -> None:
        """Keep a plan; those that only older steps need go."""
        self._fs.create_dir(self._folder, recursive=True)
        with self._fs.open_output_stream(f"{self._path(step)}.tmp") as file:
            file.write(msgspec.json.encode(plan))
        self._fs.move(f"{self._path(step)}.tmp", self._path(step))
        make_private_on(self._fs, self._folder, self._path(step))
        for info in self._fs.get_file_info(fs.FileSelector(self._folder)):
            if info.extension == "json" and int(info.base_name.partition(".")[0]) < plan.parent:
                self._fs.delete_file(info.path)

    def _path(self, step: int) -> str:
        return f"{self._folder}/{step:012d}.json"
