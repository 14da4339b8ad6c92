"""Random cases in the form of the recorded ones: a topology of one family, and input for it, both from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tests.conformance.draft import Draft, Node
from tests.conformance.families import FAMILIES, OPTIMIZED

Case = dict[str, Any]

VALUES = ("x", "z", "a", "ab", "y y", "lorem ipsum", "p-1", "q-2", "b-3", None)
KEYS = ("a", "b", "c", "d")


def random_case(family: str, seed: int) -> Case:
    """The case of a family that a seed stands for."""
    chance = random.Random(f"{family} {seed}")
    draft = Draft(chance)
    FAMILIES[family](draft)
    case: Case = {"name": f"{family}-{seed}", "topology": draft.nodes, "input": list(rows(draft, family))}
    if family in OPTIMIZED:
        case["config"] = {"topology.optimization": draft.pick("none", "all")}
    return case


def rows(draft: Draft, family: str) -> Iterator[Node]:
    """Input in the order of arrival: mostly in order of time, now and then late, equal, or far ahead."""
    topics = sorted(set(inputs(draft.nodes)))
    latest = 0
    for number in range(draft.chance.randint(30, 90)):
        if family == "process" and draft.maybe(0.1, True):
            yield {"advance_ms": draft.pick(5, 30, 70)}
            continue
        latest, time = moved(draft, latest)
        key = draft.maybe(0.92, draft.pick(*KEYS))
        row = {"topic": draft.pick(*topics), "key": key, "value": draft.pick(*VALUES), "ts": time}
        yield row | ({"headers": [["h", str(number)]]} if draft.maybe(0.1, True) else {})


def inputs(nodes: list[Node]) -> Iterator[str]:
    for node in nodes:
        if node["op"] == "stream":
            yield from node["topics"]
        elif node["op"] in ("table", "global_table"):
            yield node["topic"]


def moved(draft: Draft, latest: int) -> tuple[int, int]:
    """The latest time after the next record, and that record's time."""
    luck = draft.chance.random()
    if luck < 0.15:
        return latest, max(0, latest - draft.chance.randint(0, 15))
    if luck < 0.22:
        return latest, max(0, latest - draft.chance.randint(0, 400))
    if luck < 0.24:
        return latest + 2_000, latest + 2_000
    step = draft.chance.randint(0, 25) if luck < 0.94 else draft.chance.randint(25, 220)
    return latest + step, latest + step
