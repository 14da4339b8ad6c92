"""A random topology in the making, and the steps that families of them share."""

from __future__ import annotations

import random
from typing import Any

Node = dict[str, Any]

STRINGS = {"kt": "string", "vt": "string"}
PREDICATES = ("true", "length_gt:1", "length_gt:4", "starts_with:l", "contains:-", "key_is:a", "key_is:b")
VALUE_MAPPERS = ("identity", "upper", "append:!", "prepend_key", "to_string", "null_if:x")
KEY_MAPPERS = ("value", "first_char", "const:k", "key_append:1", "key")
SIZES, GRACES, GAPS = (20, 50, 100), (0, 20, 50, 200), (15, 30, 60)


class Draft:
    """A topology in the making: nodes by what they read, each with the next number."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.nodes, self._last = chance, list[Node](), 0

    def add(self, op: str, stream: str | None = None, **fields: Any) -> str:
        self._last += 1
        name = f"v{self._last}"
        source = {} if stream is None else {"in": stream}
        self.nodes.append({"id": name, "op": op, **source, **{k: v for k, v in fields.items() if v is not None}})
        return name

    def to(self, stream: str, topic: str = "out", value: str = "string") -> None:
        self.nodes.append({"op": "to", "in": stream, "topic": topic, "kt": "string", "vt": value})

    def pick(self, *choices: Any) -> Any:
        return self.chance.choice(choices)

    def maybe(self, probability: float, value: Any) -> Any:
        return value if self.chance.random() < probability else None

    def stream(self, topic: str, name: str | None = None) -> str:
        return self.add("stream", topics=[topic], **STRINGS, name=name)

    def table(self, topic: str, store: str | None, history_ms: int | None = None) -> str:
        return self.add("table", topic=topic, **STRINGS, store=store, versioned_ms=history_ms)


def stateless_step(draft: Draft, stream: str) -> str:
    """One operator of any kind that keeps key and value strings."""
    op = draft.pick("filter", "filter_not", "map", "map_values", "flat_map", "flat_map_values", "select_key", "peek")
    functions: dict[str, tuple[str, ...]] = {
        "filter": PREDICATES,
        "filter_not": PREDICATES[3:],
        "map": ("swap", "key_to_value", "value_to_key"),
        "map_values": VALUE_MAPPERS,
        "flat_map": ("words", "both_ways"),
        "flat_map_values": ("split", "twice", "none"),
        "select_key": KEY_MAPPERS,
        "peek": ("",),
    }
    return draft.add(op, stream, fn=draft.pick(*functions[op]) or None)


def fork(draft: Draft, stream: str) -> str:
    """Two ways that meet again."""
    if draft.maybe(0.5, True):
        ways = [stateless_step(draft, stream), stateless_step(draft, stream)]
    else:
        first, second, other = (f"b{len(draft.nodes)}{letter}" for letter in "xyz")
        branches = [{"id": first, "fn": draft.pick(*PREDICATES)}, {"id": second, "fn": draft.pick(*PREDICATES)}]
        default = draft.maybe(0.6, other)
        draft.nodes.append(
            {"op": "split", "in": stream, "branches": branches} | ({"default": default} if default else {})
        )
        if default:
            draft.to(other, "default-branch")
        ways = [first, stateless_step(draft, second)]
    return draft.add("merge", ways[0], right=ways[1])


def chain(draft: Draft, stream: str, most: int) -> str:
    """Up to so many stateless operators after a stream."""
    for _ in range(draft.chance.randint(0, most)):
        stream = fork(draft, stream) if draft.maybe(0.2, True) else stateless_step(draft, stream)
    return stream


def grouped(draft: Draft, stream: str, name: str | None = None) -> str:
    if draft.maybe(0.4, True):
        return draft.add("group_by_key", stream, **STRINGS, name=name)
    return draft.add("group_by", stream, fn=draft.pick("value", "first_char", "const:k"), **STRINGS, name=name)


def stored(draft: Draft, name: str = "store") -> Node:
    """How a result is kept: named or not, now and then without the record cache."""
    store = draft.maybe(0.7, name)
    return {"store": store, "caching": draft.maybe(0.15, False) if store else None}


def windowed(draft: Draft, stream: str, kind: str) -> str:
    grace = draft.pick(*GRACES)
    if kind == "session":
        return draft.add("windowed_by", stream, kind=kind, gap_ms=draft.pick(*GAPS), grace_ms=grace)
    size = draft.pick(*SIZES)
    advance = draft.pick(*(step for step in (10, 20, 35) if step <= size)) if kind == "hopping" else None
    return draft.add("windowed_by", stream, kind=kind, size_ms=size, advance_ms=advance, grace_ms=grace)


def shortest_retention(nodes: list[Node]) -> int:
    """Of the store behind the last windows: what their size and grace demand."""
    windows = next(node for node in reversed(nodes) if node["op"] == "windowed_by")
    times = 2 if windows["kind"] == "sliding" else 1
    shortest: int = times * windows.get("size_ms", 0) + windows.get("gap_ms", 0) + windows["grace_ms"]
    return shortest


def aggregated(draft: Draft, stream: str, kind: str | None = None, store: str = "store") -> tuple[str, str]:
    """An aggregation of a group, and the type of its values."""
    fields = {"kt": "string", **stored(draft, store)}
    if kind is not None:
        fields["windowed"] = "session" if kind == "session" else "window"
        fields["retention_ms"] = draft.maybe(0.15, shortest_retention(draft.nodes) + draft.pick(0, 10, 100, 1000))
    how = draft.pick("count", "reduce", "trace", "sum")
    if how == "count":
        return draft.add("count", stream, **fields), "long"
    if how == "reduce":
        return draft.add("reduce", stream, **fields, vt="string", fn=draft.pick("concat", "last")), "string"
    merger = {"trace": "trace", "sum": "sum"}[how] if kind == "session" else None
    if how == "sum":
        return draft.add(
            "aggregate", stream, **fields, vt="long", fn="sum_length", initializer="zero", merger=merger
        ), "long"
    function = "trace_add" if kind == "session" else draft.pick("trace_add", "null_at_three")
    initial = draft.pick("empty", "const:I")
    fields |= {"vt": "string", "fn": function, "initializer": initial, "merger": merger}
    return draft.add("aggregate", stream, **fields), "string"


def table_out(draft: Draft, table: str, value: str, kind: str | None = None, topic: str = "out") -> None:
    draft.to(draft.add("to_stream", table, key="windowed" if kind else None), topic, value)


def table_view(draft: Draft, table: str) -> str:
    """A table seen through a filter or a mapper, or as it is."""
    step = draft.pick("filter", "filter_not", "map_values", None, None)
    if step is None:
        return table
    function = draft.pick("upper", "null_if:x") if step == "map_values" else draft.pick("length_gt:1", "contains:-")
    store = draft.maybe(0.25, f"view-{len(draft.nodes)}")
    return draft.add(step, table, fn=function, **({"store": store, **STRINGS} if store else {}))


def two_tables(draft: Draft, history: float = 0.15) -> tuple[str, str]:
    sides = []
    for side in ("left", "right"):
        kept = draft.maybe(history, draft.pick(50, 200, 1000))
        sides.append(draft.table(side, f"{side}-store" if kept else draft.maybe(0.5, f"{side}-store"), kept))
    return sides[0], sides[1]


def rekeyed(draft: Draft, stream: str) -> str:
    return draft.add("select_key", stream, fn="first_char")


def joined_streams(draft: Draft, left: str, right: str, **fields: Any) -> str:
    before, after = draft.pick(0, 10, 30, 60), draft.pick(0, 10, 30, 60)
    sides = {"joiner": draft.pick("concat", "with_key"), "kt": "string", "lt": "string", "rt": "string"}
    bounds = {"before_ms": before, "after_ms": after, "grace_ms": draft.pick(0, 15, 50, 200)}
    op = draft.pick("join", "left_join", "outer_join")
    return draft.add(op, left, right=right, **sides, **bounds, **fields)


def joined_table(draft: Draft, stream: str, table: str, **fields: Any) -> str:
    sides = {"joiner": draft.pick("concat", "with_key"), "kt": "string", "lt": "string", "rt": "string"}
    return draft.add(draft.pick("join", "left_join"), stream, right=table, **sides, **fields)
