"""The queries of Nexmark, each as functions, as expressions, or both where both can say it.

The meaning of query N is https://github.com/nexmark/nexmark/blob/master/nexmark-flink/src/main/resources/queries/qN.sql,
and in SQL of DuckDB in answers.py. Each writes to the topic of its name: records, or the changes of a table by key.
`NEXMARK_QUERY=q5 kstreams run benchmarks/nexmark/app.py` runs one.

Windows stay open for an hour. Nexmark's watermark is that of all partitions, but the stream time of Kafka Streams is
that of a task, and two tasks that read the same topic may be minutes apart. So no event is late here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

import kstreams as ks
from benchmarks.nexmark.generator import SIDE_INPUT, TOPIC
from kstreams.expressions import Expr

GRACE = timedelta(hours=1)
LONGEST_AUCTION = timedelta(minutes=5)  # 0.3 s at 10,000 events/s, 34 s at 100
TEN_SECONDS = ks.TimeWindows(size=timedelta(seconds=10), grace=GRACE)
DAY_MS = 24 * 60 * 60 * 1000
MINUTE_MS = 60 * 1000


class Person(msgspec.Struct):
    id: int
    name: str
    emailAddress: str
    creditCard: str
    city: str
    state: str
    dateTime: int
    extra: str


class Auction(msgspec.Struct):
    id: int
    itemName: str
    description: str
    initialBid: int
    reserve: int
    dateTime: int
    expires: int
    seller: int
    category: int
    extra: str


class Bid(msgspec.Struct):
    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    dateTime: int
    extra: str


class Event(msgspec.Struct):
    event_type: int
    person: Person | None
    auction: Auction | None
    bid: Bid | None


class Offer(msgspec.Struct):
    """A bid with its auction, in time."""

    auction: Auction
    bid: Bid


class Nexmark:
    """The streams of persons, auctions and bids, and the side input.

    Parameters
    ----------
    builder : StreamsBuilder
    folder : Path
        The folder of the files of query 10.
    """

    def __init__(self, builder: ks.StreamsBuilder, folder: Path) -> None:
        self._builder = builder
        self.folder = folder

    @cached_property
    def events(self) -> ks.KStream[bytes, Event]:
        return self._builder.stream(TOPIC, key=bytes, value=Event)

    @cached_property
    def persons(self) -> ks.KStream[bytes, Person]:
        return self.events.filter(ks.col("event_type") == 0).map_values(ks.col("person"), value=Person)

    @cached_property
    def auctions(self) -> ks.KStream[bytes, Auction]:
        return self.events.filter(ks.col("event_type") == 1).map_values(ks.col("auction"), value=Auction)

    @cached_property
    def bids(self) -> ks.KStream[bytes, Bid]:
        return self.events.filter(ks.col("event_type") == 2).map_values(ks.col("bid"), value=Bid)

    @cached_property
    def bids_by_arrival(self) -> ks.KStream[bytes, Bid]:
        events = self._builder.stream(
            TOPIC, key=bytes, value=Event, timestamp_extractor=ks.WallclockTimestampExtractor()
        )
        return events.filter(ks.col("event_type") == 2).map_values(ks.col("bid"), value=Bid)

    @cached_property
    def side_input(self) -> ks.GlobalKTable[int, str]:
        return self._builder.global_table(SIDE_INPUT, key=int, value=str)

    @cached_property
    def offers(self) -> ks.KStream[int, Offer]:
        """The bids between the begin and the end of their auctions."""
        bids = self.bids.select_key(ks.col("auction"), key=int)
        auctions = self.auctions.select_key(ks.col("id"), key=int)
        windows = ks.JoinWindows(before=LONGEST_AUCTION, after=0, grace=GRACE)
        offers = bids.join(auctions, lambda bid, auction: Offer(auction, bid), windows=windows, value=Offer)
        return offers.filter(lambda _, offer: offer.bid.dateTime <= offer.auction.expires)

    @cached_property
    def winning_offers(self) -> ks.KTable[int, Offer]:
        """The winner of each auction: the highest price, and of equal ones the earliest."""
        return self.offers.group_by_key(key=int).reduce(
            lambda best, offer: max(best, offer, key=lambda it: (it.bid.price, -it.bid.dateTime))
        )


Query = Callable[[Nexmark], None]
_Q = TypeVar("_Q", bound=Query)

QUERIES: dict[str, dict[str, Query]] = {}
"""The queries by name, `q0`, and form, `functions` or `expressions`."""


def functions(query: _Q) -> _Q:
    """Register a query that Python functions compute."""
    QUERIES.setdefault(query.__name__.partition("_")[0], {})["functions"] = query
    return query


def expressions(query: _Q) -> _Q:
    """Register a query that expressions compute, as far as it computes anything."""
    QUERIES.setdefault(query.__name__.partition("_")[0], {})["expressions"] = query
    return query


def topology(name: str, form: str, folder: Path) -> ks.StreamsBuilder:
    """Return a query as a topology; a query that has one form only takes that."""
    builder = ks.StreamsBuilder()
    forms = QUERIES[name]
    forms.get(form, next(iter(forms.values())))(Nexmark(builder, folder))
    return builder


# --- without state ----------------------------------------------------------------------------------------------------


class Converted(msgspec.Struct):
    auction: int
    bidder: int
    price: float
    dateTime: int
    extra: str


class Price(msgspec.Struct):
    auction: int
    price: int


@expressions
def q0_pass_through(nexmark: Nexmark) -> None:
    """All bids."""
    fields = {name: ks.col(name) for name in ("auction", "bidder", "price", "dateTime", "extra")}
    nexmark.bids.map_values(ks.struct(**fields)).to("q0")


@functions
def q0_pass_through_by_functions(nexmark: Nexmark) -> None:
    """All bids."""
    nexmark.bids.map_values(
        lambda bid: Converted(bid.auction, bid.bidder, bid.price, bid.dateTime, bid.extra), value=Converted
    ).to("q0")


@expressions
def q1_currency_conversion(nexmark: Nexmark) -> None:
    """All bids, with their prices in another currency."""
    fields = {name: ks.col(name) for name in ("auction", "bidder", "dateTime", "extra")}
    nexmark.bids.map_values(ks.struct(price=ks.col("price") * 0.908, **fields)).to("q1")


@functions
def q1_currency_conversion_by_functions(nexmark: Nexmark) -> None:
    """All bids, with their prices in another currency."""
    nexmark.bids.map_values(
        lambda bid: Converted(bid.auction, bid.bidder, bid.price * 0.908, bid.dateTime, bid.extra), value=Converted
    ).to("q1")


@expressions
def q2_selection(nexmark: Nexmark) -> None:
    """The prices of bids on some auctions."""
    chosen = nexmark.bids.filter(ks.col("auction") % 123 == 0)
    chosen.map_values(ks.struct(auction=ks.col("auction"), price=ks.col("price"))).to("q2")


@functions
def q2_selection_by_functions(nexmark: Nexmark) -> None:
    """The prices of bids on some auctions."""
    chosen = nexmark.bids.filter(lambda _, bid: bid.auction % 123 == 0)
    chosen.map_values(lambda bid: Price(bid.auction, bid.price), value=Price).to("q2")


@functions
def q10_log_to_file_system(nexmark: Nexmark) -> None:
    """All bids in files by day and minute."""
    folders = {"dt": "%Y-%m-%d", "hm": "%H-%M"}
    nexmark.bids.to(ks.sinks.files(nexmark.folder, format="csv", partition_by=folders))


@expressions
def q13_side_input(nexmark: Nexmark) -> None:
    """Each bid with a value that is looked up."""
    fields = {name: ks.col(name) for name in ("auction", "bidder", "price", "dateTime")}
    joined = ks.struct(**{name: ks.left.col(name) for name in fields}, value=ks.right.value)
    nexmark.bids.join(nexmark.side_input, joined, key_selector=ks.col("auction") % 10_000).to("q13")


class WithSideInput(msgspec.Struct):
    auction: int
    bidder: int
    price: int
    dateTime: int
    value: str


@functions
def q13_side_input_by_functions(nexmark: Nexmark) -> None:
    """Each bid with a value that is looked up."""
    nexmark.bids.join(
        nexmark.side_input,
        lambda bid, side: WithSideInput(bid.auction, bid.bidder, bid.price, bid.dateTime, side),
        key_selector=lambda _, bid: bid.auction % 10_000,
        value=WithSideInput,
    ).to("q13")


class Calculated(msgspec.Struct):
    auction: int
    bidder: int
    price: float
    bidTimeType: str
    dateTime: int
    extra: str
    c_counts: int


def time_type(time_ms: int) -> str:
    """Return the kind of the hour of a time in UTC."""
    hour = time_ms % DAY_MS // (60 * MINUTE_MS)
    if 8 <= hour <= 18:
        return "dayTime"
    return "nightTime" if hour <= 6 or hour >= 20 else "otherTime"


@expressions
def q14_calculation(nexmark: Nexmark) -> None:
    """Bids of a range of prices, with the kind of their hour and how many letters c they have."""
    price = ks.col("price") * 0.908
    hour = ks.timestamp.cast(datetime).dt.hour()
    extra = ks.col("extra")
    by_night = ks.when((hour <= 6) | (hour >= 20)).then("nightTime").otherwise("otherTime")
    calculated = {
        "bidTimeType": ks.when(hour.between(8, 18)).then("dayTime").otherwise(by_night),
        "c_counts": extra.str.len() - extra.str.replace_all("c", "").str.len(),
    }
    fields = {name: ks.col(name) for name in ("auction", "bidder", "dateTime", "extra")}
    in_range = nexmark.bids.filter((price > 1_000_000) & (price < 50_000_000))
    in_range.map_values(ks.struct(price=price, **calculated, **fields)).to("q14")


@functions
def q14_calculation_by_functions(nexmark: Nexmark) -> None:
    """Bids of a range of prices, with the kind of their hour and how many letters c they have."""

    def calculated(bid: Bid) -> Calculated:
        kind = time_type(bid.dateTime)
        letters = bid.extra.count("c")
        return Calculated(bid.auction, bid.bidder, bid.price * 0.908, kind, bid.dateTime, bid.extra, letters)

    in_range = nexmark.bids.filter(lambda _, bid: 1_000_000 < bid.price * 0.908 < 50_000_000)
    in_range.map_values(calculated).to("q14")


class WithChannel(msgspec.Struct):
    auction: int
    bidder: int
    price: int
    channel: str
    channel_id: str


class WithFolders(msgspec.Struct):
    auction: int
    bidder: int
    price: int
    channel: str
    dir1: str
    dir2: str
    dir3: str


CHANNEL_ID = re.compile("[&^]channel_id=([^&]*)")
CHANNEL_IDS = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}


@expressions
def q21_channel_id(nexmark: Nexmark) -> None:
    """Bids with the ids of their channels."""
    number = ks.col("url").str.extract(CHANNEL_ID.pattern)
    for name, fixed_number in CHANNEL_IDS.items():
        number = ks.when(ks.col("channel").str.lower() == name).then(fixed_number).otherwise(number)
    fields = {name: ks.col(name) for name in ("auction", "bidder", "price", "channel")}
    bids = nexmark.bids.map_values(ks.struct(channel_id=number, **fields))
    bids.filter(~ks.col("channel_id").is_null()).to("q21")


@functions
def q21_channel_id_by_functions(nexmark: Nexmark) -> None:
    """Bids with the ids of their channels."""

    def with_channel(bid: Bid) -> list[WithChannel]:
        match = CHANNEL_ID.search(bid.url)
        number = CHANNEL_IDS.get(bid.channel.lower()) or (match and match.group(1))
        return [WithChannel(bid.auction, bid.bidder, bid.price, bid.channel, number)] if number else []

    nexmark.bids.flat_map_values(with_channel, value=WithChannel).to("q21")


@expressions
def q22_url_directories(nexmark: Nexmark) -> None:
    """Bids with the folders of their addresses."""
    parts = ks.col("url").str.split("/").list
    folders = {f"dir{place}": parts.get(place + 2) for place in (1, 2, 3)}
    fields = {name: ks.col(name) for name in ("auction", "bidder", "price", "channel")}
    nexmark.bids.map_values(ks.struct(**fields, **folders)).to("q22")


@functions
def q22_url_directories_by_functions(nexmark: Nexmark) -> None:
    """Bids with the folders of their addresses."""

    def with_folders(bid: Bid) -> WithFolders:
        return WithFolders(bid.auction, bid.bidder, bid.price, bid.channel, *bid.url.split("/")[3:6])

    nexmark.bids.map_values(with_folders).to("q22")


# --- joins ------------------------------------------------------------------------------------------------------------


class LocalItem(msgspec.Struct):
    id: int
    name: str
    city: str
    state: str


@expressions
def q3_local_items(nexmark: Nexmark) -> None:
    """Who sells in some states, and what."""
    auctions = nexmark.auctions.filter(ks.col("category") == 10).select_key(ks.col("seller"), key=int)
    sellers = nexmark.persons.filter(ks.col("state").is_in(["OR", "ID", "CA"]))
    fields = {name: ks.right.col(name) for name in ("name", "city", "state")}
    item = ks.struct(id=ks.left.col("id"), **fields)
    items = auctions.join(sellers.select_key(ks.col("id"), key=int), item, retain=None)
    items.select_key(ks.col("id"), key=int).to("q3")


@functions
def q3_local_items_by_functions(nexmark: Nexmark) -> None:
    """Who sells in some states, and what."""

    def local_item(auction: Auction, seller: Person) -> LocalItem:
        return LocalItem(auction.id, seller.name, seller.city, seller.state)

    auctions = nexmark.auctions.filter(lambda _, auction: auction.category == 10)
    sellers = nexmark.persons.filter(lambda _, person: person.state in {"OR", "ID", "CA"})
    by_seller = auctions.select_key(lambda _, auction: auction.seller, key=int)
    items = by_seller.join(sellers.select_key(lambda _, person: person.id, key=int), local_item, retain=None)
    items.select_key(lambda _, item: item.id, key=int).to("q3")


class Categorized(msgspec.Struct):
    category: int
    price: int


@functions
def q4_average_price_of_category(nexmark: Nexmark) -> None:
    """The mean price of the winning bids of each category."""
    prices = nexmark.winning_offers.map_values(
        lambda offer: Categorized(offer.auction.category, offer.bid.price), value=Categorized
    )
    by_category = prices.group_by((ks.col("category"), ks.value), key=int, value=Categorized)
    means = by_category.aggregate(category=ks.col("category").max(), final=ks.col("price").mean())
    means.to_stream().to("q4")


class Sale(msgspec.Struct):
    seller: int
    auction: int
    dateTime: int
    price: int


class SellerMean(msgspec.Struct):
    seller: int
    price: float


@functions
def q6_average_price_of_seller(nexmark: Nexmark) -> None:
    """The mean price of the last ten winning bids of each seller."""

    def sale(_: int, offer: Offer) -> tuple[int, Sale]:
        bid, seller = offer.bid, offer.auction.seller
        return seller, Sale(seller, bid.auction, bid.dateTime, bid.price)

    sales = nexmark.winning_offers.group_by(sale, key=int, value=Sale)
    last_ten = sales.top_n(10, by=lambda sale: (sale.dateTime, sale.auction))
    means = last_ten.map_values(
        lambda last: SellerMean(last[0].seller, sum(sale.price for sale in last) / len(last)), value=SellerMean
    )
    means.to_stream().to("q6")


class NewUser(msgspec.Struct):
    id: int
    name: str
    starttime: int


@functions
def q8_new_users(nexmark: Nexmark) -> None:
    """Persons who opened an auction in the ten seconds in which they registered."""
    persons = nexmark.persons.group_by(ks.col("id"), key=int).windowed_by(TEN_SECONDS).reduce(lambda first, _: first)
    sellers = nexmark.auctions.group_by(ks.col("seller"), key=int).windowed_by(TEN_SECONDS).count()
    users = persons.join(sellers, lambda person, _: person, value=Person).map_values(
        lambda key, person: NewUser(person.id, person.name, key.window.start_ms), with_key=True, value=NewUser
    )
    users.to_stream().to("q8")


@functions
def q9_winning_bids(nexmark: Nexmark) -> None:
    """The winning bid of each auction."""
    nexmark.winning_offers.to_stream().to("q9")


@expressions
def q20_bid_with_auction(nexmark: Nexmark) -> None:
    """Each bid with its auction, for auctions of a category."""
    auctions = nexmark.auctions.filter(ks.col("category") == 10).select_key(ks.col("id"), key=int)
    bids = nexmark.bids.select_key(ks.col("auction"), key=int)
    bids.join(auctions, ks.struct(auction=ks.right.value, bid=ks.left.value), retain=None).to("q20")


@functions
def q20_bid_with_auction_by_functions(nexmark: Nexmark) -> None:
    """Each bid with its auction, for auctions of a category."""
    auctions = nexmark.auctions.filter(lambda _, auction: auction.category == 10)
    bids = nexmark.bids.select_key(lambda _, bid: bid.auction, key=int)
    by_id = auctions.select_key(lambda _, auction: auction.id, key=int)
    bids.join(by_id, lambda bid, auction: Offer(auction, bid), retain=None, value=Offer).to("q20")


class BidOfPerson(msgspec.Struct):
    bid: Bid
    person: Person


class BidOfSeller(msgspec.Struct):
    bid: Bid
    person: Person
    auction: Auction


@functions
def q23_bid_with_person_and_auction(nexmark: Nexmark) -> None:
    """Each bid with its bidder, and the auctions of which the bidder is the seller."""
    bids = nexmark.bids.select_key(ks.col("bidder"), key=int)
    persons = nexmark.persons.select_key(ks.col("id"), key=int)
    auctions = nexmark.auctions.select_key(ks.col("seller"), key=int)
    bidders = bids.join(persons, BidOfPerson, retain=None, value=BidOfPerson)
    bidders.join(
        auctions, lambda one, auction: BidOfSeller(one.bid, one.person, auction), retain=None, value=BidOfSeller
    ).to("q23")


# --- windows ----------------------------------------------------------------------------------------------------------


class AuctionCount(msgspec.Struct):
    auction: int
    num: int


class HotItems(msgspec.Struct):
    num: int = 0
    auctions: list[int] = []


@functions
def q5_hot_items(nexmark: Nexmark) -> None:
    """The auctions with the most bids of the last ten seconds, every two seconds."""
    windows = ks.TimeWindows(size=timedelta(seconds=10), advance=timedelta(seconds=2), grace=GRACE)
    counts = nexmark.bids.group_by(ks.col("auction"), key=int).windowed_by(windows).count()

    def hottest(_: int, item: AuctionCount, hot: HotItems) -> HotItems:
        # a count only grows: an auction is passed by another, or passes the others itself
        if item.num > hot.num:
            return HotItems(item.num, [item.auction])
        return HotItems(hot.num, sorted({*hot.auctions, item.auction})) if item.num == hot.num else hot

    items = counts.to_stream().map(
        lambda key, num: (key.window.start_ms, AuctionCount(key.key, num)), key=int, value=AuctionCount
    )
    items.group_by_key(key=int, value=AuctionCount).aggregate(HotItems, hottest).to_stream().to("q5")


@functions
def q7_highest_bid(nexmark: Nexmark) -> None:
    """The bid or bids with the highest price of each ten seconds."""

    def highest(_: str, bid: Bid, best: list[Bid]) -> list[Bid]:
        if best and best[0].price > bid.price:
            return best
        return [*(other for other in best if other.price == bid.price), bid]

    all_bids = nexmark.bids.group_by(lambda *_: "all", key=str).windowed_by(TEN_SECONDS)
    all_bids.aggregate(list, highest, value=list[Bid]).to_stream().to("q7")


@expressions
def q11_user_sessions(nexmark: Nexmark) -> None:
    """How many bids a user makes in a session, which ends after ten seconds without."""
    sessions = ks.SessionWindows(gap=timedelta(seconds=10), grace=GRACE)
    counts = nexmark.bids.group_by(ks.col("bidder"), key=int).windowed_by(sessions).count()
    times = {"starttime": ks.window_start, "endtime": ks.window_end}
    counts.map_values(ks.struct(bidder=ks.key, bid_count=ks.value, **times)).to_stream().to("q11")


@expressions
def q12_processing_time_windows(nexmark: Nexmark) -> None:
    """How many bids of a user arrive in ten seconds."""
    bids = nexmark.bids_by_arrival.group_by(ks.col("bidder"), key=int)
    counts = bids.windowed_by(TEN_SECONDS).count()
    counts.map_values(ks.struct(bidder=ks.key, bid_count=ks.value)).to_stream().to("q12")


# --- aggregations -----------------------------------------------------------------------------------------------------


PRICE = ks.col("price")
RANKS = {
    "rank1": PRICE < 10_000,
    "rank2": (PRICE >= 10_000) & (PRICE < 1_000_000),
    "rank3": PRICE >= 1_000_000,
}


def bids_of_ranks() -> dict[str, Expr]:
    """Return how many bids there are, of all and of each rank of prices."""
    ranks = {f"{rank}_bids": ks.when(condition).then(1).count() for rank, condition in RANKS.items()}
    return {"total_bids": ks.len(), **ranks}


def distinct_of_ranks(field: str) -> dict[str, Expr]:
    """Return how many values of a field the bids have, all and those of each rank of prices."""
    column = ks.col(field)
    ranks = {f"{rank}_{field}s": ks.when(condition).then(column).n_unique() for rank, condition in RANKS.items()}
    return {f"total_{field}s": column.n_unique(), **ranks}


@expressions
def q15_bidding_statistics(nexmark: Nexmark) -> None:
    """Bids, bidders and auctions of each day."""
    by_day = nexmark.bids.group_by(ks.col("dateTime") // DAY_MS, key=int)
    statistics = by_day.aggregate(**bids_of_ranks(), **distinct_of_ranks("bidder"), **distinct_of_ranks("auction"))
    statistics.to_stream().to("q15")


class ChannelDay(msgspec.Struct, frozen=True):
    channel: str
    day: int


@expressions
def q16_channel_statistics(nexmark: Nexmark) -> None:
    """Bids, bidders and auctions of each channel and day."""
    time = ks.col("dateTime")
    by_channel = nexmark.bids.group_by(ks.struct(channel=ks.col("channel"), day=time // DAY_MS), key=ChannelDay)
    distinct = distinct_of_ranks("bidder") | distinct_of_ranks("auction")
    fields = {"channel": ks.col("channel").max(), "minute": (time % DAY_MS // MINUTE_MS).max()}
    by_channel.aggregate(**fields, **bids_of_ranks(), **distinct).to_stream().to("q16")


class AuctionDay(msgspec.Struct, frozen=True):
    auction: int
    day: int


@expressions
def q17_auction_statistics(nexmark: Nexmark) -> None:
    """Bids and prices of each auction and day."""
    price = ks.col("price")
    group = ks.struct(auction=ks.col("auction"), day=ks.col("dateTime") // DAY_MS)
    prices = {"min_price": price.min(), "max_price": price.max(), "avg_price": price.mean(), "sum_price": price.sum()}
    by_auction = nexmark.bids.group_by(group, key=AuctionDay)
    by_auction.aggregate(auction=ks.col("auction").max(), **bids_of_ranks(), **prices).to_stream().to("q17")


class BidderAndAuction(msgspec.Struct, frozen=True):
    bidder: int
    auction: int


@functions
def q18_last_bid(nexmark: Nexmark) -> None:
    """The last bid of each bidder on each auction."""
    bids = nexmark.bids.group_by(lambda _, bid: BidderAndAuction(bid.bidder, bid.auction), key=BidderAndAuction)
    bids.reduce(lambda last, bid: bid if bid.dateTime >= last.dateTime else last).to_stream().to("q18")


@functions
def q19_top_ten(nexmark: Nexmark) -> None:
    """The ten highest bids of each auction."""
    bids = nexmark.bids.group_by(ks.col("auction"), key=int)
    bids.top_n(10, by=lambda bid: bid.price).to_stream().to("q19")
