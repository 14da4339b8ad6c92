"""Ordered async functions give what plain ones give, record for record, in any topology and however input is cut."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from tests.async_functions.running import run_topics

TABLE, STREAM = "table", "in"


async def later(value: str) -> str:
    for _ in range(ord(value[-1]) % 4):  # some calls end before others that began earlier
        await asyncio.sleep(0)
    return value + "'"


def at_once(value: str) -> str:
    return value + "'"


def both(left: str, right: str) -> str:
    return f"({left}+{right})"


def topology(shape: list[str], function: Any) -> ks.StreamsBuilder:
    """Steps from "in" to "out"; `function` stands in every "call"."""
    builder = ks.StreamsBuilder({"default.dsl.store": "in_memory"})
    table = builder.table(TABLE, key=str, value=str, materialized="table")
    source = stream = builder.stream(STREAM, key=str, value=str)
    for step in shape:
        if step == "call":
            stream = stream.map_values(function, value=str)
        elif step == "join":
            stream = stream.join(table, both)
        elif step == "merge":
            stream = stream.merge(source)
        elif step == "count":
            stream = stream.group_by_key().count().to_stream().map_values(str, value=str)
        else:
            stream.to("out")
    stream.to("out")
    return builder


steps = st.lists(st.sampled_from(["call", "join", "merge", "count", "to"]), max_size=6)
records = st.lists(
    st.tuples(st.sampled_from([STREAM, STREAM, STREAM, TABLE]), st.sampled_from("ab"), st.sampled_from("stuvw")),
    max_size=20,
)


@settings(max_examples=60, deadline=None)
@given(shape=steps, rows=records)
def test_ordered_calls_give_what_plain_functions_give(shape: list[str], rows: list[tuple[str, str, str]]) -> None:
    timed = [(*row, time) for time, row in enumerate(rows)]
    plain = run_topics(topology(shape, at_once), timed)
    assert run_topics(topology(shape, later), timed, async_concurrency=3) == plain
