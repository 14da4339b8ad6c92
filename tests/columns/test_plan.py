"""Which sources feed a region of columns, and the reason in words where one does not."""

from __future__ import annotations

import msgspec
import pytest

import kstreams as ks
from kstreams.errors import SerdeError
from kstreams.kernel.batch import Row
from kstreams.processor.task.columns.plan import ColumnPlan, plan_regions
from tests.columns.both_paths import assert_same, assert_same_if_columns, reason, run


class Order(msgspec.Struct):
    amount: int
    tags: list[str] = []


def orders(builder: ks.StreamsBuilder) -> ks.KStream:
    return builder.stream("in", key=str, value=Order)


def late_orders() -> ks.Topology:
    builder = ks.StreamsBuilder()
    orders(builder).filter(ks.col("amount") > 1).to("out", key=str, value=Order)
    return builder.build()


def test_a_chain_of_expressions_to_a_sink_is_a_region() -> None:
    assert reason(late_orders()) is None


def test_ways_that_part_and_do_not_meet_are_one_region() -> None:
    def build() -> ks.Topology:
        builder = ks.StreamsBuilder()
        stream = orders(builder)
        stream.filter(ks.col("amount") > 1).to("large", key=str, value=Order)
        stream.map_values(ks.col("amount") * 2).to("doubled", key=str, value=int)
        stream.group_by_key().count().to_stream().to("counts", key=str, value=int)
        return builder.build()

    seen = assert_same(build, [[Row(b"k", b'{"amount":%d}' % n, n, ()) for n in range(5)]])
    assert {topic: len(rows) for topic, rows in seen.outputs.items()} == {"large": 3, "doubled": 5, "counts": 1}


@pytest.mark.parametrize(
    ("say", "why"),
    [
        (lambda s: s.filter(lambda k, v: True).to("out", key=str, value=Order), "not made of expressions"),
        (lambda s: s.merge(s.filter(ks.col("amount") > 1)).to("out", key=str, value=Order), "paths meet in"),
        (lambda s: s.to(lambda k, v, context: "out", key=str, value=Order), "chooses topic or partition"),
        (lambda s: s.filter(ks.col("tags").is_null()).to("out", key=str, value=Order), "no columnar form"),
        (
            lambda s: (
                s.to("out", key=str, value=Order),
                s.filter(ks.col("amount") > 1).to("out", key=str, value=Order),
            ),
            "paths meet in out",
        ),
    ],
)
def test_what_takes_records_one_by_one_says_why(say: object, why: str) -> None:
    builder = ks.StreamsBuilder()
    say(orders(builder))  # type: ignore[operator]
    assert why in (reason(builder.build()) or "")


def test_without_the_record_cache_every_update_goes_by_record() -> None:
    builder = ks.StreamsBuilder()
    orders(builder).group_by_key().count()
    (part,) = builder.build().sub_topologies
    assert isinstance(plan_regions(part)["KSTREAM-SOURCE-0000000000"], ColumnPlan)
    assert "record cache is off" in str(plan_regions(part, caching=False)["KSTREAM-SOURCE-0000000000"])


def test_only_the_fields_that_expressions_read_are_read() -> None:
    (part,) = late_orders().sub_topologies
    (planned,) = plan_regions(part).values()
    assert isinstance(planned, ColumnPlan)
    assert {repr(leaf) for leaf in planned.leaves} == {"ks.key", "ks.value", "ks.col('amount')"}


def test_a_stream_merged_with_itself_comes_once() -> None:
    def build() -> ks.Topology:
        builder = ks.StreamsBuilder()
        large = orders(builder).filter(ks.col("amount") > 1)
        large.merge(large).to("out", key=str, value=Order)
        return builder.build()

    seen = assert_same_if_columns(build, [[Row(b"k", b'{"amount":%d}' % n, n, ()) for n in range(4)]])
    assert len(seen.outputs["out"]) == 2


def test_of_zero_and_minus_zero_the_first_stays_the_least() -> None:
    def build() -> ks.Topology:
        builder = ks.StreamsBuilder()
        least = builder.stream("in", key=str, value=dict[str, float]).group_by_key().aggregate(least=ks.col("x").min())
        least.to_stream().map_values(str).to("out", key=str, value=str)
        return builder.build()

    seen = assert_same(build, [[Row(b"k", b'{"x":-0.0}', 1, ())], [Row(b"k", b'{"x":0.0}', 2, ())]])
    assert [row[1] for row in seen.outputs["out"]] == [b"Fields(least=-0.0)"]


def test_headers_go_through_columns_with_their_records() -> None:
    rows = [Row(b"k", b'{"amount":%d}' % n, n, (("n", b"%d" % n),)) for n in range(4)]
    seen = assert_same(late_orders, [rows])
    assert [row[3][0]["value"] for row in seen.outputs["out"]] == [b"2", b"3"]


def test_a_record_that_does_not_decode_is_named_as_on_the_record_path() -> None:
    rows = [Row(b"k", b'{"amount":1}', 0, ()), Row(b"k", b'{"amount":', 1, ())]
    messages = []
    for columns in (True, False):
        with pytest.raises(SerdeError, match="in-0@1") as caught:
            run(late_orders(), [rows], columns=columns)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_where_a_processor_runs_stream_time_must_be_looked_at_after_each_record() -> None:
    class Same(ks.FixedKeyProcessor):
        """Forwards nothing."""

    def counts(builder: ks.StreamsBuilder) -> ks.KTable:
        return orders(builder).group_by_key().count(materialized="counts")

    for say in (
        lambda counts: counts.to_stream().process_values(Same, value=int),
        lambda counts: counts.to_stream().process(ks.Processor),
        lambda counts: counts.transform_values(Same, value=int).to_stream(),
    ):
        builder = ks.StreamsBuilder()
        say(counts(builder))
        assert "punctuators of stream time" in str(reason(builder.build()))
