"""Recorded cases that show a fault of Kafka Streams: there, loops over the input compute the full answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.conformance import brute_force_tables
from tests.conformance.recorded import Case

Better = Callable[[Case], Case]
"""Puts the full answer in the place of the recorded output and stores."""

INITIAL_VALUE = (
    "Without the record cache, Kafka Streams tells that the first update of a key replaces the initial value of its "
    "aggregate. A filter that lets this value pass then writes a tombstone for a row that never was."
)

REASONS: dict[str, str] = dict.fromkeys(
    ("aggregate-1-16", "aggregate-1-25", "aggregate-1-26", "aggregate-1-29"), INITIAL_VALUE
)
"""Why a case is here, by its name."""

BETTER: dict[str, Better] = dict.fromkeys(
    ("aggregate-1-16", "aggregate-1-25", "aggregate-1-26", "aggregate-1-29"), brute_force_tables.full_answer
)
"""What gives the full answer, by the name of a case."""

SHAPES: tuple[tuple[Callable[[Case], bool], Better], ...] = (
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
