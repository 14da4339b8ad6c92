"""`StepFolder`: the objects of steps in a folder of the checkpoint. It deletes the objects of old steps."""

from __future__ import annotations

from kstreams.runtime.spark.steps import NO_STEP
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage


class StepFolder:
    """The names of the objects in a folder, one or several for each step.

    The folder is listed once; afterwards this driver tracks the objects that it writes. The next driver lists objects
    that another driver has written meanwhile.

    Parameters
    ----------
    storage : CheckpointStorage
    folder : str
    """

    def __init__(self, storage: CheckpointStorage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._step_by_name: dict[str, int] | None = None

    def path(self, step: int, digest: str = "") -> str:
        """Return the path of the object of a step with this digest."""
        return f"{self._folder}/{step:012d}{f'-{digest}' if digest else ''}.json"

    def keep(self, step: int, digest: str = "", *, oldest: int) -> None:
        """Track an object that was written, and delete the objects of steps before `oldest`."""
        steps = self._steps()
        steps[self.path(step, digest)] = step
        old = [name for name, number in steps.items() if number < oldest]
        self._storage.delete(old)
        for name in old:
            del steps[name]

    def newest(self) -> int:
        """Return the last step with an object, or `NO_STEP`."""
        return max(self._steps().values(), default=NO_STEP)

    def _steps(self) -> dict[str, int]:
        if self._step_by_name is None:
            names = [f"{self._folder}/{name}" for name in self._storage.names(self._folder)]
            self._step_by_name = {name: _step(name) for name in names}
        return self._step_by_name


def _step(name: str) -> int:
    return int(name.rpartition("/")[2].partition(".")[0].partition("-")[0])
