"""Recorded cases that show a fault of Kafka Streams: there, loops over the input compute the full answer.

The full answers are computed in plain Python from the input and the topology of the case; all engines are compared with
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.conformance import brute_force_tables, on_close
from tests.conformance.recorded import Case

Better = Callable[[Case], Case]
"""Puts the full answer in the place of the recorded output and stores."""

INITIAL_VALUE = (
    "Without the record cache, Kafka Streams tells that the first update of a key replaces the initial value of its "
    "aggregate. A filter that lets this value pass then writes a tombstone for a row that never was."
)
LOST_WINDOWS = (
    "Windows that close as stream time jumps have expired in the store of Kafka Streams before it emits them."
)

_TOMBSTONES_OF_NOTHING = [f"aggregate-1-{number}" for number in (16, 25, 26, 29)]
_LOSE_WINDOWS = [
    *(f"tumbling-1-{number}" for number in (4, 8, 13, 15, 16, 17, 19, 25)),
    *(f"hopping-1-{number}" for number in (1, 3, 5, 6, 10, 11, 12, 15, 16, 18, 19, 21, 25)),
    *(f"sliding-1-{number}" for number in (3, 15, 17, 20, 27, 29)),
    *(f"window_close-1-{number}" for number in (0, 3, 4, 5, 6, 9, 11, 12, 13, 14, 15, 18, 19, 20, 22, 23, 26, 27)),
]

BETTER: dict[str, Better] = {
    **dict.fromkeys(_TOMBSTONES_OF_NOTHING, brute_force_tables.full_answer),
    **dict.fromkeys(_LOSE_WINDOWS, on_close.with_every_window),
}
"""What gives the full answer, by the name of a case."""

REASONS: dict[str, str] = {
    **dict.fromkeys(_TOMBSTONES_OF_NOTHING, INITIAL_VALUE),
    **dict.fromkeys(_LOSE_WINDOWS, LOST_WINDOWS),
}
"""Why a case is here, by its name."""

SHAPES: tuple[tuple[Callable[[Case], bool], Better], ...] = (
    (on_close.closes_windows, on_close.with_every_window),
    (brute_force_tables.concerns, brute_force_tables.full_answer),
)
"""What gives the full answer of random cases that may show the same fault: the first whose condition holds."""


def with_full_answers(cases: Iterable[Case]) -> list[Case]:
    """The recorded cases, those of `BETTER` with the full answer."""
    return [BETTER[case["name"]](case) if case["name"] in BETTER else case for case in cases]


def with_full_answer(case: Case) -> Case:
    """A random case, with the full answer where its shape may show a fault."""
    full_answer = next((answer for concerns, answer in SHAPES if concerns(case)), None)
    return case if full_answer is None else full_answer(case)
