"""`CommittedPartition`: one partition of a store as of the last commit, as queries ask it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from kstreams.state.committed import CommittedViews
from kstreams.state.read_only_store import Answer

Question = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class CommittedPartition:
    """A store as of the last commit of its task; who asks reads it.

    Parameters
    ----------
    number : int
    views : CommittedViews
    name : str
        Of the store.
    """

    number: int
    views: CommittedViews
    name: str

    def begin(self, question: Question) -> Callable[[], Answer]:
        """Let the caller answer a question when it waits for that."""
        return partial(self._answer, question)

    def _answer(self, question: Question) -> Answer:
        view = self.views.acquire()
        try:
            return Answer(question(view.store(self.name)), view.position)
        finally:
            self.views.give_back(view)
