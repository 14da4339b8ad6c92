"""`Loads`: the number of tasks per thread of each client, and moves of tasks that make the loads equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from kstreams.processor.topology.sub_topologies import TaskId

Choose = Callable[[str, str], TaskId | None]  # returns the task that moves from one client to another, or None


class Loads:
    """The number of tasks of each client.

    Parameters
    ----------
    capacities : mapping of str to int
    counts : mapping of str to int
        The present number of tasks of each client.

    Examples
    --------
    >>> loads = Loads({"one": 1, "two": 2}, {"one": 1, "two": 1})
    >>> loads.lightest(["one", "two"])
    'two'
    """

    def __init__(self, capacities: Mapping[str, int], counts: Mapping[str, int]) -> None:
        self._capacities = capacities
        self.counts = {client: counts.get(client, 0) for client in capacities}

    def add(self, client: str, count: int = 1) -> None:
        """Add to the number of a client's tasks."""
        self.counts[client] += count

    def of(self, client: str, more: int = 0) -> Fraction:
        """Return the number of tasks per thread of a client with `more` tasks."""
        return Fraction(self.counts[client] + more, self._capacities[client])

    def lightest(self, clients: Iterable[str]) -> str:
        """Return the client with the least load after one more task."""
        return min(clients, key=lambda client: (self.of(client, 1), self.of(client), client))

    def balance(self, choose: Choose, move: Callable[[TaskId, str, str], None]) -> None:
        """Move one task after another as long as a move makes the loads more equal."""
        while (next_move := self._next_move(choose)) is not None:
            task, giver, taker = next_move
            move(task, giver, taker)
            self.add(giver, -1)
            self.add(taker)

    def _next_move(self, choose: Choose) -> tuple[TaskId, str, str] | None:
        by_load = sorted(self.counts, key=lambda client: (self.of(client), client))
        for giver in reversed(by_load):
            for taker in by_load:
                if self.of(giver) > self.of(taker, 1) and (task := choose(giver, taker)) is not None:
                    return task, giver, taker
        return None
