"""Queries of Nexmark as keyed steps, for systems whose Python API has stateful functions: Quix and Bytewax.

Neither retracts results, so a merged session (query 11) cannot be said: both emit sessions when they have closed. This
file imports nothing of kstreams, since it runs in the environments of the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

Row = dict[str, Any]
DAY_MS = 24 * 60 * 60 * 1000


class State(Protocol):
    """The state of one key."""

    def get(self, name: str, default: Any = None) -> Any: ...
    def set(self, name: str, value: Any) -> None: ...


class Step(NamedTuple):
    """A step by key: `key(row)` divides rows, and `step(state, row)` returns the rows that follow."""

    key: Callable[[Row], str]
    step: Callable[[State, Row], list[Row]]


class Query(NamedTuple):
    """A query: `rows(event)` without state, steps by key, and the key and value of a result."""

    rows: Callable[[Row], Iterable[Row]]
    steps: tuple[Step, ...] = ()
    key: Callable[[Row], str] = lambda row: ""
    value: Callable[[Row], Any] = lambda row: row


def bids(event: Row) -> list[Row]:
    """Return the bid of an event, if it is one."""
    return [event["bid"]] if event["event_type"] == 2 else []


def taken(row: Row, *names: str) -> Row:
    """Return some fields of a row."""
    return {name: row[name] for name in names}


# --- without state ----------------------------------------------------------------------------------------------------


def pass_through(event: Row) -> list[Row]:
    """Query 0."""
    return [taken(bid, "auction", "bidder", "price", "dateTime", "extra") for bid in bids(event)]


def converted(event: Row) -> list[Row]:
    """Query 1."""
    return [{**bid, "price": bid["price"] * 0.908} for bid in pass_through(event)]


def selected(event: Row) -> list[Row]:
    """Query 2."""
    return [taken(bid, "auction", "price") for bid in bids(event) if bid["auction"] % 123 == 0]


def with_side_input(side: dict[int, str]) -> Callable[[Row], list[Row]]:
    """Query 13, with the rows of the side input."""

    def rows(event: Row) -> list[Row]:
        found = [(bid, side.get(bid["auction"] % 10_000)) for bid in bids(event)]
        return [
            {**taken(bid, "auction", "bidder", "price", "dateTime"), "value": value}
            for bid, value in found
            if value is not None
        ]

    return rows


# --- joins ------------------------------------------------------------------------------------------------------------


def auctions_and_bids(event: Row) -> list[Row]:
    """Return an auction or a bid as a row with the number of its auction."""
    if event["event_type"] == 1:
        return [{"number": event["auction"]["id"], "auction": event["auction"]}]
    return [{"number": bid["auction"], "bid": bid} for bid in bids(event)]


def items_and_sellers(event: Row) -> list[Row]:
    """Return auctions of a category and persons of some states, by seller."""
    auction, person = event["auction"], event["person"]
    if event["event_type"] == 1 and auction["category"] == 10:
        return [{"who": auction["seller"], "item": auction["id"]}]
    if event["event_type"] == 0 and person["state"] in {"OR", "ID", "CA"}:
        return [{"who": person["id"], "person": taken(person, "name", "city", "state")}]
    return []


def local_items(state: State, row: Row) -> list[Row]:
    """Query 3."""
    if "person" in row:
        state.set("person", row["person"])
        return [{"id": item, **row["person"]} for item in state.get("items", [])]
    person = state.get("person")
    if person is not None:
        return [{"id": row["item"], **person}]
    state.set("items", [*state.get("items", []), row["item"]])
    return []


def bids_of_category(event: Row) -> list[Row]:
    """Return bids, and the auctions of a category."""
    return [row for row in auctions_and_bids(event) if "bid" in row or row["auction"]["category"] == 10]


def with_auction(state: State, row: Row) -> list[Row]:
    """Query 20."""
    if "auction" in row:
        state.set("auction", row["auction"])
        return [{"auction": row["auction"], "bid": bid} for bid in state.get("bids", [])]
    auction = state.get("auction")
    if auction is not None:
        return [{"auction": auction, "bid": row["bid"]}]
    state.set("bids", [*state.get("bids", []), row["bid"]])
    return []


def winning(state: State, row: Row) -> list[Row]:
    """The highest price of an auction in time, with the one before, for query 4."""
    if "auction" in row:
        state.set("auction", taken(row["auction"], "dateTime", "expires", "category"))
    else:
        state.set("bids", [*state.get("bids", []), taken(row["bid"], "dateTime", "price")])
    auction = state.get("auction")
    if auction is None:
        return []
    prices = [
        bid["price"] for bid in state.get("bids", []) if auction["dateTime"] <= bid["dateTime"] <= auction["expires"]
    ]
    state.set("bids", [])
    best = state.get("best")
    new = max(prices, default=None)
    if new is None or (best is not None and new <= best):
        return []
    state.set("best", new)
    return [{"category": auction["category"], "old": best, "new": new}]


def mean(state: State, row: Row) -> list[Row]:
    """Query 4."""
    total = state.get("total", 0) + row["new"] - (row["old"] or 0)
    count = state.get("count", 0) + (row["old"] is None)
    state.set("total", total)
    state.set("count", count)
    return [{"category": row["category"], "final": total / count}]


def persons_and_sellers(event: Row) -> list[Row]:
    """Return persons and sellers with the ten seconds of their event."""
    if event["event_type"] == 0:
        person = event["person"]
        start = person["dateTime"] // 10_000 * 10_000
        return [{"who": person["id"], "start": start, "name": person["name"]}]
    if event["event_type"] == 1:
        auction = event["auction"]
        return [{"who": auction["seller"], "start": auction["dateTime"] // 10_000 * 10_000, "name": None}]
    return []


def new_users(state: State, row: Row) -> list[Row]:
    """Query 8."""
    state.set("sells", state.get("sells", False) or row["name"] is None)
    state.set("name", row["name"] or state.get("name"))
    name = state.get("name")
    return [{"id": row["who"], "name": name, "starttime": row["start"]}] if name and state.get("sells") else []


# --- windows ----------------------------------------------------------------------------------------------------------


def windows_of_bids(event: Row) -> list[Row]:
    """Return the auction of a bid with the start of each of its windows."""
    starts = [bid["dateTime"] // 2_000 * 2_000 - 2_000 * number for bid in bids(event) for number in range(5)]
    return [{"auction": event["bid"]["auction"], "start": start} for start in starts]


def counted(state: State, row: Row) -> list[Row]:
    """Count rows."""
    count = state.get("count", 0) + 1
    state.set("count", count)
    return [{**row, "num": count}]


def hottest(state: State, row: Row) -> list[Row]:
    """Query 5."""
    most = state.get("most", 0)
    if row["num"] < most:
        return []
    auctions = {row["auction"], *(state.get("auctions", []) if row["num"] == most else [])}
    state.set("most", row["num"])
    state.set("auctions", sorted(auctions))
    return [{"start": row["start"], "value": {"num": row["num"], "auctions": sorted(auctions)}}]


def highest(state: State, row: Row) -> list[Row]:
    """Query 7."""
    best = state.get("best", [])
    if best and best[0]["price"] > row["bid"]["price"]:
        return []
    best = [*(bid for bid in best if bid["price"] == row["bid"]["price"]), row["bid"]]
    state.set("best", best)
    return [{"start": row["start"], "value": best}]


def bids_by_window(event: Row) -> list[Row]:
    """Return a bid with its ten seconds."""
    return [{"start": bid["dateTime"] // 10_000 * 10_000, "bid": bid} for bid in bids(event)]


def bids_by_arrival(event: Row) -> list[Row]:
    """Return the bidder of a bid with the ten seconds in which it arrived."""
    return [{"bidder": bid["bidder"], "start": int(time.time()) // 10} for bid in bids(event)]


# --- aggregations -----------------------------------------------------------------------------------------------------


def rank(price: int) -> str:
    """Return the rank of a price."""
    return "rank1" if price < 10_000 else "rank2" if price < 1_000_000 else "rank3"


def statistics(state: State, bid: Row) -> list[Row]:
    """Query 15: each bidder and auction is a name of the state."""
    counts = state.get("counts") or {
        f"{part}_{what}": 0 for what in ("bids", "bidders", "auctions") for part in ("total", "rank1", "rank2", "rank3")
    }
    for part in ("total", rank(bid["price"])):
        counts[f"{part}_bids"] += 1
        for field in ("bidder", "auction"):
            name = f"{part}_{field}s"
            if state.get(f"{name}:{bid[field]}") is None:
                state.set(f"{name}:{bid[field]}", 1)
                counts[name] += 1
    state.set("counts", counts)
    return [counts | {"day": bid["dateTime"] // DAY_MS}]


def last_bid(state: State, bid: Row) -> list[Row]:
    """Query 18."""
    if bid["dateTime"] < state.get("time", 0):
        return []
    state.set("time", bid["dateTime"])
    return [bid]


def top_ten(state: State, bid: Row) -> list[Row]:
    """Query 19."""
    best = sorted([*state.get("best", []), bid], key=lambda other: -other["price"])[:10]
    state.set("best", best)
    return [{"auction": bid["auction"], "value": best}]


def _value(row: Row) -> Any:
    return row["value"]


QUERIES: dict[str, Query] = {
    "q0": Query(pass_through),
    "q1": Query(converted),
    "q2": Query(selected),
    "q3": Query(items_and_sellers, (Step(lambda row: str(row["who"]), local_items),), lambda row: str(row["id"])),
    "q4": Query(
        auctions_and_bids,
        (Step(lambda row: str(row["number"]), winning), Step(lambda row: str(row["category"]), mean)),
        lambda row: str(row["category"]),
    ),
    "q5": Query(
        windows_of_bids,
        (Step(lambda row: f"{row['auction']}@{row['start']}", counted), Step(lambda row: str(row["start"]), hottest)),
        lambda row: str(row["start"]),
        _value,
    ),
    "q7": Query(bids_by_window, (Step(lambda row: str(row["start"]), highest),), lambda row: str(row["start"]), _value),
    "q8": Query(
        persons_and_sellers,
        (Step(lambda row: f"{row['who']}@{row['start']}", new_users),),
        lambda row: f"{row['id']}@{row['starttime']}",
    ),
    "q12": Query(
        bids_by_arrival,
        (Step(lambda row: f"{row['bidder']}@{row['start']}", counted),),
        lambda row: f"{row['bidder']}@{row['start']}",
        lambda row: {"bidder": row["bidder"], "bid_count": row["num"]},
    ),
    "q15": Query(
        bids,
        (Step(lambda bid: str(bid["dateTime"] // DAY_MS), statistics),),
        lambda row: str(row["day"]),
        lambda row: {name: count for name, count in row.items() if name != "day"},
    ),
    "q18": Query(
        bids,
        (Step(lambda bid: f"{bid['bidder']}@{bid['auction']}", last_bid),),
        lambda bid: f"{bid['bidder']}@{bid['auction']}",
    ),
    "q19": Query(bids, (Step(lambda bid: str(bid["auction"]), top_ten),), lambda row: str(row["auction"]), _value),
    "q20": Query(bids_of_category, (Step(lambda row: str(row["number"]), with_auction),)),
}
"""The queries by name; query 13 is made of its side input (`with_side_input`)."""


def query_of(name: str, read_side_input: Callable[[], dict[int, str]]) -> Query:
    """Return a query; `read_side_input` returns the rows of the side input."""
    return Query(with_side_input(read_side_input())) if name == "q13" else QUERIES[name]


class Half:
    """Prints `half` when half of the events have come.

    Parameters
    ----------
    events : int
    """

    def __init__(self, events: int) -> None:
        self._missing = events // 2

    def count(self, event: Row) -> Row:
        """Count an event, and return it."""
        self._missing -= 1
        if self._missing == 0:
            print("half", flush=True)
        return event


def side_input(bootstrap: str) -> dict[int, str]:
    """Read the side input from its topic, whose keys are integers of 8 bytes."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "side", "enable.partition.eof": False})
    topic = "nexmark-side-input"
    numbers = consumer.list_topics(topic).topics[topic].partitions
    ends = {number: consumer.get_watermark_offsets(TopicPartition(topic, number))[1] for number in numbers}
    consumer.assign([TopicPartition(topic, number, 0) for number in numbers])
    side: dict[int, str] = {}
    while len(side) < sum(ends.values()):
        for message in consumer.consume(10_000, 1.0):
            side[int.from_bytes(message.key(), "big")] = message.value().decode()
    consumer.close()
    return side
