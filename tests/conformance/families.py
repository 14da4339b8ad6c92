"""The families of random topologies: what each draws."""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance.draft import (
    STRINGS,
    Draft,
    aggregated,
    chain,
    grouped,
    joined_streams,
    joined_table,
    rekeyed,
    stateless_step,
    stored,
    table_out,
    table_view,
    two_tables,
    windowed,
)


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
