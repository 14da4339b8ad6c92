"""`StepFolder`: objects of steps in a folder of the checkpoint, of which those of old steps go."""

from __future__ import annotations

from kstreams.runtime.spark.steps import NO_STEP
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage


class StepFolder:
    """Names of objects, one or several for each step, and which of them are still needed.

    The folder is listed once: later this driver knows what lies there by itself. What another one leaves beside that
    is found by the next.

    Parameters
    ----------
    storage : CheckpointStorage
    folder : str
    """

    def __init__(self, storage: CheckpointStorage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._kept: dict[str, int] | None = None

    def path(self, step: int, digest: str = "") -> str:
        """Where the object of a step lies, of several the one with this digest."""
        return f"{self._folder}/{step:012d}{f'-{digest}' if digest else ''}.json"

    def keep(self, step: int, digest: str = "", *, oldest: int) -> None:
        """Note an object that was put there, and delete those of steps before `oldest`."""
        names = self._known()
        names[self.path(step, digest)] = step
        old = [name for name, number in names.items() if number < oldest]
        self._storage.delete(old)
        for name in old:
            del names[name]

    def newest(self) -> int:
        """The last step of which there is an object; `NO_STEP` without any."""
        return max(self._known().values(), default=NO_STEP)

    def _known(self) -> dict[str, int]:
        if self._kept is None:
            names = [f"{self._folder}/{name}" for name in self._storage.names(self._folder)]
            self._kept = {name: _step(name) for name in names}
        return self._kept


def _step(name: str) -> int:
    return int(name.rpartition("/")[2].partition(".")[0].partition("-")[0])
