"""`run_rounds`: runs the sub-topologies of a cycle within one step until none has input. Pure logic.

A foreign-key join is such a cycle: the left side sends subscriptions to the right side, which sends responses back to
the left side. Each sub-topology runs again on the records that the others have written since its last round.
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
    """Run sub-topologies until every record that one of them has written is read.

    Parameters
    ----------
    members : sequence of int
        The sub-topologies, in the order of their first rounds. Each runs at least once.
    inputs : mapping of int to collection of str
        By member: the topics of the cycle that it reads.
    run : callable
        `run(member, round_number, pending)` runs one round on the rows that were written since the member's last round.
        It returns the rows of the round and their topics.

    Returns
    -------
    dict of int to list
        By member: the rows of its rounds.

    Raises
    ------
    TopologyError
        If there is still input after `MAX_ROUNDS` rounds.

    Examples
    --------
    >>> def countdown(member, number, pending):
    ...     return (2 - number, ["again"] if number < 2 else [])
    >>> run_rounds([0], {0: ["again"]}, countdown)
    {0: [2, 1, 0]}
    """
    rows_of_rounds: dict[int, list[Rows]] = {member: [] for member in members}
    pending: dict[int, list[Rows]] = {member: [] for member in members}  # by member that has to run
    while pending:
        member = next(iter(pending))
        round_number = len(rows_of_rounds[member])
        if round_number == MAX_ROUNDS:
            raise TopologyError(
                f"Sub-topologies {sorted(members)} feed each other without end: after {MAX_ROUNDS} rounds in one step "
                "there are still records for them. Add a filter that stops records in the cycle."
            )
        rows, topics = run(member, round_number, pending.pop(member))
        rows_of_rounds[member].append(rows)
        for reader in members:
            if not set(inputs[reader]).isdisjoint(topics):
                pending.setdefault(reader, []).append(rows)
    return rows_of_rounds
