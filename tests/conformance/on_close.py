"""What `EmitStrategy.ON_WINDOW_CLOSE` must put out in a case: computed in plain Python from its input and topology."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kstreams as ks
from tests.conformance.recorded import Case, replay
from tests.windows.final_windows import COUNT, Fold, Record, final_windows

Pair = tuple[Any, Any]
"""A key and a value."""
Step = Callable[[Any, Any], list[Pair]]


def closes_windows(case: Case) -> bool:
    """Whether windows are emitted at their close."""
    return any(node.get("fn") == "on_window_close" for node in case["topology"])


def with_every_window(case: Case) -> Case:
    """The case as it would be if no window were lost: rows of other topics, and stores, stay as they are."""
    (closing,) = (node for node in case["topology"] if node.get("fn") == "on_window_close")
    aggregation = _behind(case, closing)
    sink = _behind(case, _behind(case, aggregation))
    positions, records = _records(case, closing)
    rows = []
    for final in final_windows(_windows(case, closing), records, _fold(aggregation)):
        if final.closed_by < len(records):  # the test driver does not end its input
            step = positions[final.closed_by]
            key = f"{final.key}@{final.start_ms}/{final.end_ms}"
            headers = case["input"][step].get("headers", [])
            rows.append([step, sink["topic"], key, final.value, final.timestamp_ms, headers])
    others = [row for row in case["expected"]["output"] if row[1] != sink["topic"]]
    expected = {name: part for name, part in case["expected"].items() if name != "output_uncached"}
    return {**case, "expected": {**expected, "output": sorted([*rows, *others], key=lambda row: row[0])}}


def _behind(case: Case, node: Any) -> Any:
    (child,) = (child for child in case["topology"] if child.get("in") == node["id"])
    return child


def _windows(case: Case, closing: Any) -> ks.Windows:
    (node,) = (node for node in case["topology"] if node.get("id") == closing["in"])
    if node["kind"] == "session":
        return ks.SessionWindows(gap=node["gap_ms"], grace=node["grace_ms"])
    if node["kind"] == "sliding":
        return ks.SlidingWindows(difference=node["size_ms"], grace=node["grace_ms"])
    return ks.TimeWindows(size=node["size_ms"], advance=node.get("advance_ms"), grace=node["grace_ms"])


def _fold(node: Any) -> Fold:
    named = replay().named
    if node["op"] == "count":
        return COUNT
    if node["op"] == "reduce":
        reducer = named(replay().REDUCERS, node["fn"])

        def reduced(key: Any, value: Any, aggregate: Any) -> Any:
            return value if aggregate is None else reducer(aggregate, value)

        return Fold(lambda: None, reduced, lambda key, aggregate, other: reduced(key, other, aggregate))
    merge = named(replay().MERGERS, node["merger"]) if "merger" in node else None
    return Fold(named(replay().INITIALIZERS, node["initializer"]), named(replay().AGGREGATORS, node["fn"]), merge)


def _records(case: Case, closing: Any) -> tuple[list[int], list[Record]]:
    """What reaches the windows, and by which record of the input each of it does."""
    (source,) = (node for node in case["topology"] if node["op"] == "stream")
    positions, records = list[int](), list[Record]()
    for step, item in enumerate(case["input"]):
        if item.get("topic") in source["topics"]:
            reached = _reaching(case, source["id"], closing["id"], item["key"], item["value"])
            records += [(key, value, item["ts"]) for key, value in reached]
            positions += [step] * len(reached)
    return positions, records


def _reaching(case: Case, stream: str, target: str, key: Any, value: Any) -> list[Pair]:
    """What comes of a record of a stream further down, depth first."""
    if stream == target:
        return [(key, value)]
    reached: list[Pair] = []
    for node in case["topology"]:
        if node["op"] == "split" and node["in"] == stream:
            taken = next((way["id"] for way in _ways(node) if way["is_taken"](key, value)), None)
            reached += [] if taken is None else _reaching(case, taken, target, key, value)
        elif "id" in node and stream in (node.get("in"), node.get("right")):
            for pair in _STEPS[node["op"]](node)(key, value):
                reached += _reaching(case, node["id"], target, *pair)
    return reached


def _ways(split: Any) -> list[dict[str, Any]]:
    named, predicates = replay().named, replay().PREDICATES
    branches = [{"id": way["id"], "is_taken": named(predicates, way["fn"])} for way in split["branches"]]
    default = split.get("default")
    return [*branches, {"id": default, "is_taken": lambda key, value: True}] if default else branches


def _function(catalogue: str, node: Any) -> Any:
    return replay().named(getattr(replay(), catalogue), node["fn"])


def _as_it_is(node: Any) -> Step:
    return lambda key, value: [(key, value)]


def _filter(node: Any) -> Step:
    holds = _function("PREDICATES", node)
    return lambda key, value: [(key, value)] if holds(key, value) else []


def _filter_not(node: Any) -> Step:
    holds = _function("PREDICATES", node)
    return lambda key, value: [] if holds(key, value) else [(key, value)]


def _map(node: Any) -> Step:
    mapper = _function("MAPPERS", node)
    return lambda key, value: [mapper(key, value)]


def _map_values(node: Any) -> Step:
    mapper = _function("VALUE_MAPPERS", node)
    return lambda key, value: [(key, mapper(key, value))]


def _flat_map(node: Any) -> Step:
    mapper = _function("FLAT_MAPPERS", node)
    return lambda key, value: list(mapper(key, value))


def _flat_map_values(node: Any) -> Step:
    mapper = _function("FLAT_VALUE_MAPPERS", node)
    return lambda key, value: [(key, new) for new in mapper(key, value)]


def _new_key(node: Any) -> Step:
    mapper = _function("KEY_MAPPERS", node)
    return lambda key, value: [(mapper(key, value), value)]


_STEPS: dict[str, Callable[[Any], Step]] = {
    "filter": _filter,
    "filter_not": _filter_not,
    "map": _map,
    "map_values": _map_values,
    "flat_map": _flat_map,
    "flat_map_values": _flat_map_values,
    "select_key": _new_key,
    "group_by": _new_key,
    **dict.fromkeys(["merge", "peek", "group_by_key", "windowed_by", "emit_strategy"], _as_it_is),
}
