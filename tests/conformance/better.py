"""Recorded cases in which Kafka Streams loses results that kstreams gives, each with the full answer.

The full answers are computed in plain Python from the input and the topology of the case; all engines are compared with
them.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance.on_close import closes_windows, with_every_window
from tests.conformance.recorded import Case

_LOST_WINDOWS = [
    *(f"tumbling-1-{number}" for number in (4, 8, 13, 15, 16, 17, 19, 25)),
    *(f"hopping-1-{number}" for number in (1, 3, 5, 6, 10, 11, 12, 15, 16, 18, 19, 21, 25)),
    *(f"sliding-1-{number}" for number in (3, 15, 17, 20, 27, 29)),
    *(f"window_close-1-{number}" for number in (0, 3, 4, 5, 6, 9, 11, 12, 13, 14, 15, 18, 19, 20, 22, 23, 26, 27)),
]

BETTER: dict[str, Callable[[Case], Case]] = dict.fromkeys(_LOST_WINDOWS, with_every_window)
"""By the name of a case, what replaces the results that were recorded by the full answer."""

WHY: dict[str, str] = dict.fromkeys(
    _LOST_WINDOWS, "windows that close as stream time jumps have expired in Kafka Streams' store before it emits them"
)
"""By the name of a case, what Kafka Streams loses."""

_RULES: list[tuple[Callable[[Case], bool], Callable[[Case], Case]]] = [(closes_windows, with_every_window)]
"""In which cases something may be lost, and the full answer."""


def full(case: Case) -> Case:
    """A case that was recorded just now, with the full answer where Kafka Streams may lose results."""
    for may_lose, answer in _RULES:
        case = answer(case) if may_lose(case) else case
    return case
