"""`ensure.explicit.internal.resource.naming`: nothing that outlives a run has a name that was made up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kstreams as ks
from kstreams.errors import TopologyError

TEXTS = {"key": str, "value": str}
STRICT = {"ensure.explicit.internal.resource.naming": True}


def stream(builder: ks.StreamsBuilder, topic: str = "in") -> ks.KStream[str, str]:
    return builder.stream(topic, **TEXTS)


def refusal(builder: ks.StreamsBuilder) -> list[str]:
    builder.build()  # allowed unless asked for
    with pytest.raises(TopologyError, match="have generated names") as error:
        builder.build(STRICT)
    return str(error.value).splitlines()[1:]


def line_of(text: str) -> str:
    """The line of this file that holds a text, as errors name it."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return f"test_explicit_names.py:{1 + next(n for n, line in enumerate(lines) if text in line)}"


def test_every_unnamed_store_and_topic_is_listed_with_its_operator_and_the_line_to_name_it_at():
    builder = ks.StreamsBuilder()
    stream(builder).group_by(lambda k, v: v, key=str).count()  # the one unnamed count
    store, topic = refusal(builder)
    place = line_of("the one unnamed count")
    assert re.match(
        rf"  state store KSTREAM-AGGREGATE-STATE-STORE-\d{{10}} of count\(\) at .*{place} \(KSTREAM-AGG", store
    )
    assert store.endswith("give materialized=")
    assert re.match(rf"  repartition topic KSTREAM-AGGREGATE-STATE-STORE-\d+-repartition of .*{place}", topic)
    assert "give name=" in topic


@pytest.mark.parametrize("how", ["join", "left_join", "outer_join"])
def test_the_stores_of_a_stream_join_are_named_by_store_name(how):
    def joined(**names):
        builder = ks.StreamsBuilder()
        windows = ks.JoinWindows.of(10)
        getattr(stream(builder), how)(stream(builder, "other"), lambda a, b: a, windows=windows, **names)
        return builder

    lines = refusal(joined())
    assert len(lines) == (2 if how == "join" else 3)
    assert all(line.endswith("give store_name=") for line in lines)
    assert joined(store_name="pairs").build(STRICT).stores


def test_suppress_is_named_by_its_suppressed():
    builder = ks.StreamsBuilder()
    counts = stream(builder).group_by_key().count("counts")
    counts.suppress(ks.Suppressed.until_time_limit(10))
    (line,) = refusal(builder)
    assert line.endswith("give name= to its Suppressed")


def test_a_table_that_nobody_looks_into_keeps_nothing_and_needs_no_name():
    builder = ks.StreamsBuilder(STRICT)
    builder.table("in", **TEXTS).to_stream().to("out")
    assert not builder.build().stores


def test_what_is_named_is_taken_even_under_a_name_that_looks_generated():
    builder = ks.StreamsBuilder(STRICT)
    counts = stream(builder).group_by(lambda k, v: v, key=str, name="by-value")
    counts.count("KSTREAM-AGGREGATE-STATE-STORE-0000000007").to_stream().to("out")
    assert builder.build().describe()
