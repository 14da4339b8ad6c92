"""Rounds: how sub-topologies that feed each other in a circle run within one step. Pure logic.

A foreign-key join is such a circle: what the left side asks for is answered by the right side, and the answers come
back to the left. Each runs again, with what the others have written since, until nothing is left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from kstreams.errors import TopologyError
from kstreams.runtime.spark.steps import MAX_ROUNDS

Rows = TypeVar("Rows")


def run_rounds(
    members: Sequence[int],
    inputs: Mapping[int, Collection[str]],
    run: Callable[[int, int, Sequence[Rows]], tuple[Rows, Collection[str]]],
) -> dict[int, list[Rows]]:
    """Run sub-topologies until none has written anything that another one, or itself, still has to read.

    Parameters
    ----------
    members : sequence of int
        The sub-topologies, in the order of their first rounds: each runs once at least.
    inputs : mapping of int to collection of str
        The topics that each reads from within the circle.
    run : callable
        `run(member, round_number, waiting)`: one round, with what was written for it since the one before; returns
        its rows, and the topics that they go to.

    Returns
    -------
    dict of int to list
        By member: the rows of its rounds.

    Raises
    ------
    TopologyError
        When they would go on for ever.

    Examples
    --------
    >>> def countdown(member, number, waiting):
    ...     return (2 - number, ["again"] if number < 2 else [])
    >>> run_rounds([0], {0: ["again"]}, countdown)
    {0: [2, 1, 0]}
    """
    inputs_of_members: dict[int, list[Rows]] = {member: [] for member in members}
    pending: dict[int, list[Rows]] = {member: [] for member in members}  # for those that have to run again
    while pending:
        member = next(iter(pending))
        round_number = len(inputs_of_members[member])
        if round_number == MAX_ROUNDS:
            raise TopologyError(
                f"Sub-topologies {sorted(members)} feed each other without end: after {MAX_ROUNDS} rounds in one step "
                "there are still records for them. Let a filter in the circle end it."
            )
        rows, topics = run(member, round_number, pending.pop(member))
        inputs_of_members[member].append(rows)
        for reader in members:
            if not set(inputs[reader]).isdisjoint(topics):
                pending.setdefault(reader, []).append(rows)
    return inputs_of_members
