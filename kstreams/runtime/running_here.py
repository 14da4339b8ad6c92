"""`LocalRun`: the applications that run in this process, so that a new start replaces the former run.

In a notebook, a cell is run again to try other functions. The application that it started before still runs, in threads
without a reference. A second run would share its tasks with the first, which would still call the old functions.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import NamedTuple

from kstreams.errors import StateError

logger = logging.getLogger(__name__)

_PATIENCE_S = 60.0


class LocalRun(NamedTuple):
    """An application that runs in this process.

    Parameters
    ----------
    name : str
        The name in errors.
    source : Any
        The user's builder or topology. Runs of the same object share tasks.
    is_alive : callable
    stop : callable
        Ends the run within a number of seconds. Returns whether it has ended.
    """

    name: str
    source: object
    is_alive: Callable[[], bool]
    stop: Callable[[float], bool]


_runs: dict[str, list[LocalRun]] = {}
os.register_at_fork(after_in_child=_runs.clear)


def make_room(key: str, source: object) -> None:
    """Stop the runs of other topologies that have the same state.

    Parameters
    ----------
    key : str
        The folder of the state, which only one topology may use.
    source : Any
        The builder or topology of the new run.

    Raises
    ------
    StateError
        If one of them does not stop.
    """
    for former in [run for run in _runs.get(key, []) if run.is_alive() and run.source is not source]:
        _stop(former)


def note(key: str, run: LocalRun) -> None:
    """Add a run that starts."""
    _runs[key] = [*(other for other in _runs.get(key, []) if other.is_alive()), run]


def _stop(former: LocalRun) -> None:
    if not former.stop(_PATIENCE_S):
        raise StateError(
            f"{former.name} runs in this process already, by another topology, and did not stop within "
            f"{_PATIENCE_S:g} s: close it, or restart the process (the kernel of a notebook)"
        )
    logger.warning(
        "%s ran in this process already, by another topology: that run was closed, and the new one takes its place",
        former.name,
    )
