"""The events follow the rules of Nexmark, and are the same wherever they are written."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.compute as pc
import pytest

from benchmarks.nexmark.generator import (
    BLOCK,
    SIDE_INPUT,
    SIDE_ROWS,
    TOPIC,
    Events,
    Settings,
    all_events,
    blocks,
    write_parquet,
    write_topic,
)
from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log

SETTINGS = Settings(events=2 * BLOCK + 150)


@pytest.fixture(scope="module")
def events() -> Events:
    return all_events(SETTINGS)


def share(events: Events, condition: str) -> float:
    """Return the share of bids, each with the last person and auction before it, for which a condition holds."""
    bid = events.bid.append_column("n", [events.bid_numbers])  # noqa: F841  # DuckDB reads it by its name
    return float(duckdb.sql(f"select avg(({condition})::int) from bid where n > 50000").fetchall()[0][0])


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_rest_bids(events: Events) -> None:
    assert len(events.person) == SETTINGS.events // 50
    assert len(events.auction) == 3 * len(events.person)
    assert len(events.bid) == 46 * len(events.person)


def test_persons_and_auctions_are_numbered_from_1000_on(events: Events) -> None:
    assert events.person["id"].to_pylist() == list(range(1000, 1000 + len(events.person)))
    assert events.auction["id"].to_pylist() == list(range(1000, 1000 + len(events.auction)))


def test_one_auction_of_a_hundred_is_hot_and_gets_half_of_the_bids(events: Events) -> None:
    assert share(events, "auction = (n // 50 * 3 + 2) // 100 * 100 + 1000") == pytest.approx(0.5, abs=0.02)


def test_the_other_bids_are_on_auctions_in_flight_and_on_some_that_do_not_exist_yet(events: Events) -> None:
    last = "(n // 50 * 3 + 2 + 1000)"
    in_flight = f"auction between {last} - 100 and {last} + 10 or auction = ({last} - 1000) // 100 * 100 + 1000"
    assert share(events, in_flight) == 1.0
    assert share(events, f"auction > {last}") == pytest.approx(0.5 * 10 / 111, abs=0.01)


def test_one_person_of_a_hundred_is_hot_and_makes_three_quarters_of_the_bids(events: Events) -> None:
    assert share(events, "bidder = n // 50 // 100 * 100 + 1001") == pytest.approx(0.75, abs=0.02)


def test_sellers_are_hot_in_three_of_four_auctions(events: Events) -> None:
    hot = events.auction_numbers // 50 // 100 * 100 + 1000
    assert np.mean(events.auction["seller"].to_numpy() == hot) == pytest.approx(0.75, abs=0.02)


def test_prices_are_spread_evenly_over_six_powers_of_ten(events: Events) -> None:
    powers = np.floor(np.log10(events.bid["price"].to_numpy()))
    assert [round(float(np.mean(powers == power)), 2) for power in range(2, 8)] == pytest.approx([1 / 6] * 6, abs=0.01)


def test_half_of_the_bids_come_by_four_channels_with_one_address_each(events: Events) -> None:
    named = events.bid.filter(pc.invert(pc.starts_with(events.bid["channel"], "channel-")))
    assert len(named) / len(events.bid) == pytest.approx(0.5, abs=0.02)
    assert len(pc.unique(named["url"])) == 4
    others = events.bid.filter(pc.starts_with(events.bid["channel"], "channel-"))
    with_id = pc.match_substring(others["url"], "&channel_id=").to_numpy()
    assert with_id.mean() == pytest.approx(0.9, abs=0.02)
    assert pc.all(
        pc.match_substring_regex(others["url"], r"^https://www.nexmark.com/[a-z_]+/[a-z_]+/[a-z_]+/item")
    ).as_py()


def test_auctions_end_within_twice_the_time_of_all_that_are_in_flight(events: Events) -> None:
    lasts = pc.subtract(events.auction["expires"], events.auction["dateTime"]).to_numpy()
    longest_ms = 2 * (100 * 50 // 3) * 1000 // SETTINGS.rate
    assert lasts.min() >= 1
    assert longest_ms * 0.95 < lasts.max() <= longest_ms + 2
    assert pc.all(pc.greater(events.auction["reserve"], events.auction["initialBid"])).as_py()


def test_extra_texts_bring_events_to_their_average_sizes(events: Events) -> None:
    bids = pc.utf8_length(events.bid["extra"]).to_numpy()
    assert (bids.min(), bids.max()) == (68 - 14, 68 + 13)
    auctions = sum(pc.utf8_length(events.auction[name]).to_numpy() for name in ("itemName", "description", "extra"))
    assert np.mean(auctions) + 48 == pytest.approx(500, abs=5)


def test_times_advance_by_the_rate_and_are_exchanged_within_groups() -> None:
    in_order = all_events(Settings(events=1_000, rate=1_000)).times()
    assert np.diff(in_order).tolist() == [1] * 999
    exchanged = all_events(Settings(events=1_000, rate=1_000, out_of_order=20)).times()
    assert exchanged.tolist() != in_order.tolist()
    assert np.sort(exchanged.reshape(-1, 20)).ravel().tolist() == in_order.tolist()


def test_the_same_seed_gives_the_same_events_and_another_one_others() -> None:
    first, second, other = (all_events(Settings(events=300, seed=seed)).as_json() for seed in (1, 1, 2))
    assert first == second
    assert first != other


def test_a_block_does_not_depend_on_how_many_events_follow() -> None:
    short, long = (next(blocks(Settings(events=number))).as_json() for number in (BLOCK, 2 * BLOCK))
    assert short == long


def test_topics_and_parquet_files_hold_the_same_events(tmp_path: Path) -> None:
    settings = Settings(events=1_000)
    write_parquet(settings, tmp_path)
    with open_log(tmp_path / "log") as log:
        write_topic(log, settings, 3)
        with log.consumer() as consumer:
            consumer.assign([TopicPartition(TOPIC, number) for number in range(3)])
            batches = []
            while sum(map(len, batches)) < settings.events:
                batches += consumer.poll(1.0)
            assert {batch.source.partition for batch in batches} == {0, 1, 2}
            events = [json.loads(value) for batch in batches for value in batch.values.to_pylist()]
            side_input = TopicPartition(SIDE_INPUT, 0)
            consumer.assign([side_input])
            assert consumer.end_offsets([side_input]) == {side_input: SIDE_ROWS}
    for number, kind in enumerate(("person", "auction", "bid")):
        rows = duckdb.read_parquet(str(tmp_path / f"{kind}.parquet")).fetchall()
        written = [tuple(event[kind].values()) for event in events if event["event_type"] == number]
        assert sorted(rows) == sorted(written)
