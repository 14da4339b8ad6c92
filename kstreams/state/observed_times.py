"""The highest times that stores have seen, as entries of the task metadata: rows do not always tell them."""

from __future__ import annotations

from collections.abc import Mapping

from kstreams.state.api import TaskState

_PREFIX = "observed:"


def observed_times(stores: TaskState) -> dict[str, int]:
    """The entries for the stores of a task."""
    return {_PREFIX + store: time for store, time in stores.observed().items()}


def observe_times(stores: TaskState, metadata: Mapping[str, int]) -> None:
    """Let the stores go on from the entries in the metadata."""
    times = {name.removeprefix(_PREFIX): time for name, time in metadata.items() if name.startswith(_PREFIX)}
    stores.observe(times)
