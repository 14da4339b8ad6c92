"""The names of copies, and what keeps two mirrors in opposite directions from copying copies for ever."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from kstreams.errors import ConfigError
from kstreams.log import home_at
from kstreams.mirror import Mirror, NameFilter, ReplicationPolicy
from tests.mirror.ends import EAST_TO_WEST, WEST_TO_EAST, Ends, numbered

SAME_NAMES = replace(EAST_TO_WEST, policy=ReplicationPolicy("east", "west", identity=True))
SAME_NAMES_BACK = replace(EAST_TO_WEST, policy=ReplicationPolicy("west", "east", identity=True))


def copied(topics: set[str]) -> set[str]:
    return {topic for topic in topics if "orders" in topic}


def test_two_mirrors_in_opposite_directions_copy_each_topic_once(ends: Ends) -> None:
    for end, topic in ((ends.east, "orders"), (ends.west, "orders")):
        end.create(topic)
        end.write(topic, *numbered(3))
    for _ in range(3):
        ends.copy()
        ends.copy_back()
    assert copied(ends.east.topics()) == {"orders", "west.orders"}
    assert copied(ends.west.topics()) == {"orders", "east.orders"}
    assert ends.east.rows("west.orders") == ends.west.rows("east.orders") == {0: numbered(3)}


def test_copies_of_a_third_home_are_copied_on(ends: Ends) -> None:
    ends.east.create("north.orders")
    ends.copy()
    assert copied(ends.west.topics()) == {"east.north.orders"}


def test_copies_may_have_the_names_of_their_topics(ends: Ends) -> None:
    ends.east.create("orders")
    ends.east.write("orders", *numbered(3))
    ends.copy(SAME_NAMES)
    assert ends.west.rows("orders") == {0: numbered(3)}


def test_copies_with_the_same_name_do_not_return_to_their_origin(ends: Ends, caplog) -> None:
    ends.east.create("orders")
    ends.west.create("orders-west")
    ends.east.write("orders", *numbered(3))
    for _ in range(2):
        ends.copy(SAME_NAMES)
        with caplog.at_level(logging.WARNING):
            ends.copy_back(SAME_NAMES_BACK)
    assert ends.east.rows("orders") == ends.west.rows("orders") == {0: numbered(3)}
    assert "orders-west" in ends.east.topics()
    assert "would return to their origin" in caplog.text


def test_the_records_of_others_are_not_mixed_with_copies(ends: Ends, caplog) -> None:
    for end in (ends.east, ends.west):
        end.create("orders")
        end.write("orders", *numbered(3))
    with caplog.at_level(logging.WARNING):
        ends.copy(SAME_NAMES)
    assert ends.west.rows("orders") == {0: numbered(3)}
    assert "orders of" in caplog.text
    assert "--exclude" in caplog.text


def test_two_sources_do_not_write_one_topic(ends: Ends, caplog) -> None:
    ends.east.create("orders")
    ends.east.write("orders", *numbered(3))
    ends.copy(SAME_NAMES)
    with caplog.at_level(logging.WARNING):
        ends.copy(replace(SAME_NAMES, policy=ReplicationPolicy("north", "west", identity=True)))
    assert ends.west.rows("orders") == {0: numbered(3)}
    assert "a mirror of 'east' writes it" in caplog.text


def test_another_source_with_the_same_alias_is_noticed(ends: Ends, caplog, tmp_path) -> None:
    ends.east.create("orders")
    ends.copy()
    other = home_at(f"log:{tmp_path / 'other'}")
    with other.open() as log:
        log.admin().create_topic("orders")
    with caplog.at_level(logging.WARNING):
        Mirror(other, ends.west.home, EAST_TO_WEST).run(until_end=True)
    assert f"was {ends.east.home.address} before, and is {other.address} now" in caplog.text


def test_a_home_is_not_mirrored_to_itself(ends: Ends) -> None:
    with pytest.raises(ConfigError, match="two homes"):
        Mirror(ends.east.home, ends.east.home)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ReplicationPolicy("a", "a"),
        lambda: ReplicationPolicy("a b", "c"),
        lambda: ReplicationPolicy("a", "b", separator="/"),
        lambda: NameFilter(("[",)),
        lambda: replace(WEST_TO_EAST, tasks=0),
    ],
)
def test_settings_that_cannot_be_used_are_refused(make) -> None:
    with pytest.raises(ConfigError):
        make()
