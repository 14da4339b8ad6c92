"""Joins by foreign key when left rows change before the answers to their last changes come: no row stays behind."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from tests.joins.driven import CACHED, UNCACHED, run, table_of
from tests.joins.interleaved import run_interleaved
from tests.support.examples import examples

L, R = "left", "right"
BOTH = pytest.mark.parametrize("config", [CACHED, UNCACHED], ids=["cached", "uncached"])
KINDS = pytest.mark.parametrize("kind", ["join", "left_join"])


def concat(a: str, b: str | None) -> str:
    return f"{a}+{b}"


def before_dash(value: str) -> str | None:
    return value.split("-", maxsplit=1)[0] if "-" in value else None


def joined(kind: str, left: Any, right: Any) -> None:
    getattr(left, kind)(right, concat, foreign_key=before_dash, value=str).to_stream().to("out")


def in_one_go(kind: str, changes: list[str | None], config: dict[str, Any]) -> dict[str, str]:
    """What remains of a left row "y-1", which is joined, after changes of which no answer comes before the last."""
    builder = ks.StreamsBuilder()
    rows = builder.stream(L, key=str, value=str)
    several = rows.flat_map_values(lambda value: changes if value == "changes" else [value], value=str)
    joined(kind, several.to_table(), builder.table(R, key=str, value=str))
    return table_of(run(builder, [(R, "y", "1", 0), (L, "a", "y-1", 1), (L, "a", "changes", 2)], config))


@BOTH
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([None, "z-2"], id="deleted, and set to a key without a row"),
        pytest.param(["z-1", "z-2"], id="changed twice to a key without a row"),
        pytest.param([None, "none"], id="deleted, and set to no key"),
        pytest.param(["none", None], id="set to no key, and deleted"),
        pytest.param(["z-1", None, "z-1"], id="there and back"),
    ],
)
def test_a_row_that_lost_its_partner_loses_its_result(changes: list[str | None], config: dict[str, Any]) -> None:
    assert in_one_go("join", changes, config) == {}


@BOTH
@KINDS
def test_a_row_that_comes_back_has_its_result_again(kind: str, config: dict[str, Any]) -> None:
    assert in_one_go(kind, [None, "y-1"], config) == {"a": "y-1+1"}
    assert in_one_go(kind, ["z-1", "y-2"], config) == {"a": "y-2+1"}


def test_nothing_is_asked_twice_while_answers_come_in_time() -> None:
    """Then the updates are those of Kafka Streams: of a row that never had a result none is taken back."""
    builder = ks.StreamsBuilder()
    joined("join", builder.table(L, key=str, value=str), builder.table(R, key=str, value=str))
    assert run(builder, [(L, "a", "z-1", 0), (L, "a", "z-2", 1), (R, "z", "1", 2)]) == [("a", "z-2+1", 2)]


changes = {
    L: st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from((None, "x-1", "x-2", "y-1", "none"))), max_size=10),
    R: st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from((None, "1", "2"))), max_size=8),
}


@BOTH
@KINDS
@settings(max_examples=examples(250), deadline=None)
@given(left=changes[L], right=changes[R], chance=st.randoms(use_true_random=False))
def test_however_changes_and_answers_interleave_what_remains_is_the_join(
    kind: str, config: dict[str, Any], left: Any, right: Any, chance: Any
) -> None:
    builder = ks.StreamsBuilder()
    joined(kind, builder.table(L, key=str, value=str), builder.table(R, key=str, value=str))
    out = run_interleaved(builder, {L: left, R: right}, chance.randrange, config)
    rows, partners = dict(left), dict(right)
    found = {k: (v, partners.get(before_dash(v))) for k, v in rows.items() if v is not None}
    expected = {
        k: concat(v, partner) for k, (v, partner) in found.items() if partner is not None or kind == "left_join"
    }
    assert {key: value for key, value in dict(out).items() if value is not None} == expected
