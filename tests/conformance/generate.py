"""Random cases in the form of the recorded ones: a topology of one family, and input for it, both from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

Node = dict[str, Any]
Case = dict[str, Any]

STRINGS = {"kt": "string", "vt": "string"}
VALUES = ("x", "z", "a", "ab", "y y", "lorem ipsum", "p-1", "q-2", "b-3", None)
KEYS = ("a", "b", "c", "d")
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


def stateless(draft: Draft) -> None:
    stream = draft.stream("in")
    draft.to(chain(draft, stateless_step(draft, stream), 6))


def aggregate(draft: Draft) -> None:
    group = grouped(draft, chain(draft, draft.stream("in"), 3))
    table, value = aggregated(draft, group)
    if value == "long" and draft.maybe(0.3, True):
        table = draft.add("filter", table, fn=draft.pick("even", "gt:2"))
    table_out(draft, table, value)


def window_family(kind: str | None = None, close: float = 0.3) -> Callable[[Draft], None]:
    def family(draft: Draft) -> None:
        which = kind or draft.pick("tumbling", "hopping", "sliding", "session")
        group = windowed(draft, grouped(draft, chain(draft, draft.stream("in"), 1)), which)
        if draft.maybe(close, True):
            group = draft.add("emit_strategy", group, fn="on_window_close")
        table, value = aggregated(draft, group, which)
        table_out(draft, table, value, which)

    return family


def suppress(draft: Draft) -> None:
    kind = draft.pick(None, "tumbling", "hopping", "sliding", "session")
    group = grouped(draft, draft.stream("in"))
    table, value = aggregated(draft, windowed(draft, group, kind) if kind else group, kind)
    if kind and draft.maybe(0.6, True):
        table = draft.add("suppress", table, until="window_closes")
    else:
        limit = draft.maybe(0.5, draft.pick(1, 2, 3))
        table = draft.add("suppress", table, until="time_limit", time_ms=draft.pick(0, 20, 60), max_records=limit)
    table_out(draft, table, value, kind)


def cogroup(draft: Draft) -> None:
    topics = ["one", "two", *([draft.pick("three")] if draft.maybe(0.3, True) else [])]
    groups = [grouped(draft, draft.stream(topic)) for topic in topics]
    table = draft.add("cogroup", groups[0], fn=draft.pick("trace_add", "trace_remove"))
    for group in groups[1:]:
        table = draft.add("cogroup", table, right=group, fn=draft.pick("trace_add", "trace_remove"))
    kind = draft.pick(None, "tumbling", "hopping", "sliding", "session")
    fields = {**STRINGS, "initializer": draft.pick("empty", "const:I"), **stored(draft)}
    if kind:
        table = windowed(draft, table, kind)
        fields["windowed"] = "session" if kind == "session" else "window"
    table = draft.add("aggregate", table, **fields, merger="trace" if kind == "session" else None)
    table_out(draft, table, "string", kind)


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


def table_table_join(draft: Draft) -> None:
    left, right = (table_view(draft, table) for table in two_tables(draft))
    op = draft.pick("join", "left_join", "outer_join")
    joiner = draft.pick("concat", "concat", "left", "null_if_right_missing")
    store = {"store": "joined", **STRINGS} if draft.maybe(0.5, True) else {}
    table = table_view(draft, draft.add(op, left, right=right, joiner=joiner, **store))
    if draft.maybe(0.3, True):
        third = draft.table("third", draft.maybe(0.5, "third-store"))
        table = draft.add(draft.pick("join", "left_join", "outer_join"), table, right=third, joiner="concat")
    if draft.maybe(0.2, True):
        group = draft.add("group_by", table, fn=draft.pick("first_char", "const:k"), **STRINGS)
        table = draft.add("count", group, kt="string", store="counts")
        return table_out(draft, table, "long")
    return table_out(draft, table, "string")


def foreign_key_join(draft: Draft) -> None:
    left, right = two_tables(draft, history=0.1)
    op = draft.pick("foreign_key_join", "foreign_key_left_join")
    function = draft.pick("first_char", "before_dash", "value")
    store = {"store": draft.maybe(0.6, "joined"), **STRINGS}
    joiner = draft.pick("concat", "concat", "null_if_right_missing")
    table = draft.add(op, table_view(draft, left), right=table_view(draft, right), fn=function, joiner=joiner, **store)
    table_out(draft, table, "string")


def stream_stream_join(draft: Draft) -> None:
    left, right = (draft.stream(side) for side in ("left", "right"))
    draft.to(joined_streams(draft, rekeyed(draft, left) if draft.maybe(0.2, True) else left, right))


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


def stream_table_join(draft: Draft) -> None:
    stream = draft.stream("in")
    stream = rekeyed(draft, stream) if draft.maybe(0.4, True) else stream
    kept = draft.maybe(0.5, draft.pick(50, 200, 1000))
    table = draft.table("table", "store" if kept else draft.maybe(0.8, "store"), kept)
    view = table if kept else table_view(draft, table)
    grace = draft.pick(0, 10, 40) if kept and draft.maybe(0.5, True) else None
    draft.to(joined_table(draft, stream, view, name=draft.maybe(0.3, "enrich"), grace_ms=grace))


def global_table_join(draft: Draft) -> None:
    stream = chain(draft, draft.stream("in"), 1)
    table = draft.add("global_table", topic="global", **STRINGS, store=draft.maybe(0.6, "store"))
    op, key = draft.pick("join", "left_join"), draft.pick("key", "value", "first_char")
    draft.to(draft.add(op, stream, right=table, joiner="with_key", fn=key))


def table_aggregate(draft: Draft) -> None:
    table = table_view(draft, draft.table("in", draft.maybe(0.6, "source"), draft.maybe(0.1, None)))
    group = draft.add("group_by", table, fn=draft.pick("const:k", "first_char", "value"), **STRINGS)
    fields = {"store": draft.maybe(0.8, "store"), "kt": "string"}
    how = draft.pick("count", "reduce", "aggregate")
    if how == "count":
        return table_out(draft, draft.add("count", group, **fields), "long")
    if how == "reduce":
        return table_out(
            draft, draft.add("reduce", group, **fields, vt="string", fn="concat", subtractor="remove"), "string"
        )
    functions = {"fn": "trace_add", "subtractor": "trace_remove", "initializer": draft.pick("empty", "const:I")}
    return table_out(draft, draft.add("aggregate", group, **fields, vt="string", **functions), "string")


def process(draft: Draft) -> None:
    stream = chain(draft, draft.stream("in"), 1)
    function = draft.pick(
        "echo_later:7", "distinct", "flush_stream_time:15", "flush_stream_time:40", "flush_wall_clock:30"
    )
    store = {} if function.startswith("echo") else {"store": "store", **STRINGS}
    draft.to(chain(draft, draft.add("process", stream, fn=function, **store), 2))


def to_table(draft: Draft) -> None:
    table = draft.add("to_table", chain(draft, draft.stream("in"), 1), **STRINGS, store=draft.maybe(0.6, "store"))
    table_out(draft, table_view(draft, table), "string")


def pipeline(draft: Draft) -> None:
    group = grouped(draft, chain(draft, draft.stream("in"), 3))
    table = draft.add("reduce", group, **STRINGS, fn="concat", store=draft.maybe(0.6, "counts"))
    stream = draft.add("to_stream", table)
    other = draft.stream("other")
    if draft.maybe(0.5, True):
        joined = joined_table(draft, stream, draft.add("to_table", other, **STRINGS))
    else:
        joined = joined_streams(draft, stream, other)
    kind = draft.pick("tumbling", "hopping", "sliding", "session")
    counts = draft.add("count", windowed(draft, grouped(draft, chain(draft, joined, 1)), kind), kt="string")
    draft.to(joined, "joined")
    table_out(draft, counts, "long", kind)


def naming(draft: Draft) -> None:
    left, right = draft.stream("left", draft.maybe(0.5, "left-source")), draft.stream("right")
    stream = draft.add(
        "select_key", draft.add("filter", left, fn="length_gt:0", name=draft.maybe(0.5, "keep")), fn="first_char"
    )
    stream = draft.add("map_values", stream, fn="upper", name=draft.maybe(0.5, "shout"))
    if draft.maybe(0.5, True):
        stream = draft.add("repartition", stream, **STRINGS, name=draft.maybe(0.5, "again"))
    joined = joined_streams(
        draft, stream, right, name=draft.maybe(0.5, "matched"), store=draft.maybe(0.5, "match-store")
    )
    group = draft.add("group_by", joined, fn="first_char", **STRINGS, name=draft.maybe(0.5, "by-letter"))
    table_out(draft, draft.add("count", group, kt="string", store=draft.maybe(0.6, "letters")), "long")
    if draft.maybe(0.7, True):
        table_out(
            draft, draft.add("count", windowed(draft, group, "tumbling"), kt="string"), "long", "tumbling", "windowed"
        )


def source(draft: Draft) -> None:
    """One topic read more than once, or a stream joined with itself."""
    shape = draft.pick("self_join", "twice", "table", "keys")
    if shape == "self_join":
        stream = draft.stream("in")
        return draft.to(joined_streams(draft, stream, stream))
    if shape == "twice":
        return draft.to(draft.add("merge", stateless_step(draft, draft.stream("in")), right=draft.stream("in")))
    if shape == "table":
        table = draft.table("in", draft.maybe(0.6, "store"))
        return table_out(draft, draft.add("map_values", table, fn="upper"), "string")
    stream = rekeyed(draft, draft.stream("in"))
    for name in ("one", "two", "three")[: draft.pick(2, 3)]:
        stream = draft.add(draft.pick("filter", "peek"), stream, fn="true") if draft.maybe(0.3, True) else stream
        group = draft.add("group_by_key", stream, **STRINGS, name=draft.maybe(0.3, f"by-{name}"))
        table_out(
            draft, draft.add("count", group, kt="string", store=draft.maybe(0.5, f"{name}-store")), "long", topic=name
        )
    return None


def key_changes(draft: Draft) -> None:
    """Streams that share what they are made from, several of them repartitioned."""
    streams = [draft.stream("in")]
    streams.append(draft.add("select_key", streams[0], fn=draft.pick("first_char", "value")))
    for _ in range(draft.chance.randint(1, 5)):
        stream, other = draft.pick(*streams[-3:]), draft.pick(*streams)
        op = draft.pick("map_values", "filter", "peek", "select_key", "merge")
        if op == "merge":
            streams.append(draft.add("merge", stream, right=other))
            continue
        function = {"map_values": "upper", "filter": "length_gt:0", "peek": None, "select_key": "first_char"}[op]
        streams.append(draft.add(op, stream, fn=function))
    for name in ("one", "two", "three"):
        stream = draft.pick(*streams[1:])
        if draft.maybe(0.2, True):
            draft.to(joined_streams(draft, stream, draft.pick(*streams)), name)
            continue
        group = draft.add("group_by_key", stream, **STRINGS, name=draft.maybe(0.2, f"by-{name}"))
        table = draft.add("count", group, kt="string", store=draft.maybe(0.5, f"{name}-store"))
        table_out(draft, table, "long", topic=name)


FAMILIES: dict[str, Callable[[Draft], None]] = {
    "stateless": stateless,
    "aggregate": aggregate,
    "tumbling": window_family("tumbling"),
    "hopping": window_family("hopping"),
    "sliding": window_family("sliding"),
    "session": window_family("session"),
    "window_close": window_family(close=1.0),
    "suppress": suppress,
    "cogroup": cogroup,
    "table_table_join": table_table_join,
    "foreign_key_join": foreign_key_join,
    "stream_stream_join": stream_stream_join,
    "stream_table_join": stream_table_join,
    "global_table_join": global_table_join,
    "table_aggregate": table_aggregate,
    "process": process,
    "to_table": to_table,
    "pipeline": pipeline,
    "naming": naming,
    "source": source,
    "key_changes": key_changes,
}
OPTIMIZED = ("key_changes", "pipeline", "naming", "source", "table_table_join", "aggregate")


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
