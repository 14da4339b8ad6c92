"""What operators do with records, nulls, times and headers."""

from __future__ import annotations

import pytest

import kstreams as ks
from kstreams import expressions as ex
from kstreams.testing import TopologyTestDriver
from tests.dsl.driven import UNCACHED, run


@pytest.fixture
def builder():
    return ks.StreamsBuilder()


@pytest.fixture
def words(builder):
    return builder.stream("in", key=str, value=str)


ROWS = [("a", "one", 1), (None, "two", 2), ("b", None, 3)]


def test_stateless_operators_hand_nulls_to_the_functions(builder, words):
    words.map_values(lambda k, v: f"{k}:{v}", with_key=True, value=str).to("out")
    assert run(builder, ROWS) == [("a", "a:one", 1), (None, "None:two", 2), ("b", "b:None", 3)]


def test_filter_and_filter_not_divide_a_stream(builder, words):
    words.filter(lambda k, v: v is None).merge(words.filter_not(lambda k, v: v is None)).to("out")
    assert sorted(run(builder, ROWS), key=lambda row: row[2]) == ROWS


def test_flat_map_gives_any_number_of_records_at_the_same_time(builder, words):
    words.flat_map(lambda k, v: [(c, v) for c in v or ""], key=str, value=str).to("out")
    assert run(builder, ROWS)[:3] == [("o", "one", 1), ("n", "one", 1), ("e", "one", 1)]


def test_children_see_a_record_one_after_the_other_each_with_all_that_follows(builder, words):
    seen = []
    words.peek(lambda k, v: seen.append("first")).foreach(lambda k, v: seen.append("its child"))
    words.foreach(lambda k, v: seen.append("second"))
    words.to("out")
    run(builder, ROWS[:1])
    assert seen == ["first", "its child", "second"]


def test_a_split_sends_a_record_one_way(builder, words):
    branches = (
        words.split(name="x-").branch(lambda k, v: v is None, name="none").branch(lambda k, v: k).default_branch()
    )
    for name, branch in branches.items():
        branch.map_values(lambda v, name=name: name, value=str).to("out")
    assert [row[1] for row in run(builder, ROWS)] == ["x-2", "x-0", "x-none"]


def test_a_split_may_mix_functions_and_expressions(builder, words):
    branches = words.split(name="x-").branch(ex.value == "one").branch(lambda k, v: k == "b").no_default_branch()
    branches["x-2"].to("out")
    assert run(builder, ROWS) == [("b", None, 3)]


def test_print_writes_a_line_per_record(builder, words, capsys):
    words.print(label="seen")
    words.to("out")
    run(builder, ROWS[:1])
    assert capsys.readouterr().out == "[seen]: a, one\n"


def test_the_topic_may_be_chosen_by_record(builder, words):
    words.filter(lambda k, v: k and v).to(lambda key, value, context: "out")
    assert run(builder, ROWS) == [("a", "one", 1)]


def test_expressions_do_what_functions_do(builder):
    numbers = builder.stream("in", key=str, value=int)
    doubled = numbers.filter(ex.value > 1).map_values(ex.value * 2)
    doubled.select_key(ex.key + "!").to("out")
    rows = [("a", 1, 1), ("b", 2, 2), ("c", None, 3)]
    assert run(builder, rows, value_in=int, value=int) == [("b!", 4, 2)]


def test_an_expression_may_ask_for_the_time_of_a_record(builder, words):
    words.map_values(ex.timestamp).to("out")
    assert run(builder, ROWS, value=int) == [("a", 1, 1), (None, 2, 2), ("b", 3, 3)]


def test_headers_travel_with_a_record(builder, words):
    words.map_values(str.upper, value=str).to("out")
    with TopologyTestDriver(builder.build(), {"application.id": "app"}) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        topic.pipe_record(ks.Record(key="a", value="one", timestamp=1, headers=[("h", b"1")]))
        (record,) = driver.create_output_topic("out", key=str, value=str).read_records()
    assert list(record.headers) == [("h", b"1")]


# tables


def test_a_table_drops_null_keys_and_deletes_by_null_values(builder, words):
    words.to_table(materialized="t").to_stream().to("out")
    rows = [("a", "1", 1), (None, "2", 2), ("a", None, 3), ("b", None, 4)]
    assert run(builder, rows, UNCACHED) == [("a", "1", 1), ("a", None, 3), ("b", None, 4)]


def test_with_the_record_cache_a_deletion_of_nothing_is_not_forwarded(builder, words):
    words.to_table(materialized="t").to_stream().to("out")
    assert run(builder, [("a", "1", 1), ("b", None, 4)]) == [("a", "1", 1)]


def test_a_filtered_table_deletes_what_no_longer_holds(builder, words):
    words.to_table(materialized="t").filter(lambda k, v: v != "no").to_stream().to("out")
    rows = [("a", "no", 1), ("a", "yes", 2), ("a", "no", 3), ("a", "no", 4)]
    assert run(builder, rows, UNCACHED) == [("a", "yes", 2), ("a", None, 3)]


def test_a_filter_that_cannot_know_old_values_forwards_every_deletion(builder, words):
    words.to_table().filter(lambda k, v: v != "no").to_stream().to("out")
    assert run(builder, [("a", "no", 1), ("a", "no", 2)]) == [("a", None, 1), ("a", None, 2)]


def test_a_mapped_table_does_not_ask_the_function_about_deletions(builder, words):
    words.to_table(materialized="t").map_values(len, value=int, materialized="lengths").to_stream().to("out")
    assert run(builder, [("a", "one", 1), ("a", None, 2)], value=int) == [("a", 3, 1), ("a", None, 2)]


def test_a_view_that_keeps_nothing_can_be_looked_into(builder, words):
    table = builder.table("t", key=str, value=str).filter(lambda k, v: v != "no").map_values(len, value=int)
    words.join(table, lambda word, length: f"{word}{length}").to("out", value=str)
    rows = [("t", "a", "four", 1), ("t", "b", "no", 1), ("in", "a", "x", 2), ("in", "b", "x", 3)]
    assert run(builder, rows) == [("a", "x4", 2)]


def test_rows_change_groups(builder):
    cities = builder.table("in", key=str, value=str)
    cities.group_by(lambda user, city: (city, user), key=str, value=str).count("n").to_stream().to("out")
    rows = [("ann", "rome", 1), ("bob", "rome", 2), ("ann", "oslo", 3)]
    assert run(builder, rows, UNCACHED, value=int) == [("rome", 1, 1), ("rome", 2, 2), ("rome", 1, 3), ("oslo", 1, 3)]


def test_a_group_subtracts_the_old_row_before_it_adds_the_new_one(builder):
    table = builder.table("in", key=str, value=str).group_by(lambda k, v: ("g", v), key=str, value=str)
    table.aggregate(str, lambda k, v, a: f"{a}+{v}", lambda k, v, a: f"{a}-{v}", value=str).to_stream().to("out")
    assert run(builder, [("a", "1", 1), ("a", "2", 2)]) == [("g", "+1", 1), ("g", "+1-1+2", 2)]
