"""Not run: what a user's code says to the type checker. Each line tells what comes out of an operator."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict, assert_type

import kstreams as ks
from kstreams.dsl.graph import Peek
from kstreams.kernel.batch import TopicPartition
from kstreams.state import VersionedRecord

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Order(TypedDict):
    shop: str
    amount: int


class User(TypedDict):
    name: str


def total_of(order: Order) -> float:
    return order["amount"] / 100


def words_of(order: Order) -> list[str]:
    return order["shop"].split()


def summed(key: str, order: Order, total: int) -> int:
    return total + order["amount"]


def of_both(key: str, total: int, other: int) -> int:
    return total + other


class Shout(ks.Processor[str, Order, str, bytes]):
    def init(self, context: ks.ProcessorContext[str, bytes]) -> None:
        context.forward(ks.Record(key="a", value=b"b"))
        context.forward(ks.Record(key="a", value="b"))  # type: ignore[arg-type]
        self.context = context

    def process(self, record: ks.Record[str, Order]) -> None:
        assert_type(record.value, Order)


class Length(ks.FixedKeyProcessor[str, Order, int]):
    def init(self, context: ks.FixedKeyProcessorContext[str, int]) -> None:
        assert_type(context.forward(ks.FixedKeyRecord(key="a", value=5)), None)

    def process(self, record: ks.FixedKeyRecord[str, Order]) -> None:
        assert_type(record.with_timestamp(5).value, Order)


class Named(ks.FixedKeyProcessor[str, User, str]):
    def init(self, context: ks.FixedKeyProcessorContext) -> None:
        """A context of anything."""

    def process(self, record: ks.FixedKeyRecord[str, User]) -> None:
        assert_type(record.value, User)


class Priced(ks.FixedKeyProcessor[str, Order, float]):
    def process(self, record: ks.FixedKeyRecord[str, Order]) -> None:
        assert_type(record.key, str)


async def language_of(order: Order) -> str:
    return order["shop"]


async def known(key: str, order: Order) -> bool:
    return key in order["shop"]


builder = ks.StreamsBuilder()

# ---- sources

orders = builder.stream("orders", key=str, value=Order)
assert_type(orders, ks.KStream[str, Order])
assert_type(builder.stream(["a", "b"], key=int, value=dict[str, int]), ks.KStream[int, dict[str, int]])
assert_type(builder.stream("untyped"), ks.KStream[Any, Any])
users = builder.table("users", key=str, value=User, materialized="users")
assert_type(users, ks.KTable[str, User])
places = builder.global_table("places", key=int, value=str)
assert_type(places, ks.GlobalKTable[int, str])

# ---- streams

assert_type(orders.filter(lambda key, order: order["amount"] > 1), ks.KStream[str, Order])
assert_type(orders.filter_not(ks.col("amount") > 1), ks.KStream[str, Order])
assert_type(orders.map(lambda key, order: (order["amount"], key)), ks.KStream[int, str])
assert_type(orders.map((ks.col("shop"), ks.lit(1)), key=str, value=int), ks.KStream[str, int])
assert_type(orders.map_values(total_of), ks.KStream[str, float])
assert_type(orders.map_values(lambda order: order["shop"]), ks.KStream[str, str])
assert_type(orders.map_values(lambda key, order: len(key), with_key=True), ks.KStream[str, int])
assert_type(orders.map_values(lambda order: {**order}, value=Order), ks.KStream[str, Order])
assert_type(orders.map_values(ks.col("amount") * 2, value=int), ks.KStream[str, int])
assert_type(orders.map_values(ks.col("amount") > 2), ks.KStream[str, bool])
assert_type(orders.map_values(ks.col("amount")), ks.KStream[str, Any])
assert_type(orders.flat_map(lambda key, order: [(order["amount"], key)]), ks.KStream[int, str])
assert_type(orders.flat_map_values(words_of), ks.KStream[str, str])
assert_type(orders.flat_map_values(lambda key, order: {key: 1}, with_key=True), ks.KStream[str, str])
assert_type(orders.explode("tags"), ks.KStream[str, Any])
assert_type(orders.select_key(lambda key, order: order["amount"]), ks.KStream[int, Order])
assert_type(orders.select_key(ks.col("amount"), key=int), ks.KStream[int, Order])
assert_type(orders.select_key(ks.col("amount").cast(str)), ks.KStream[str, Order])
assert_type(orders.peek(lambda key, order: None), ks.KStream[str, Order])
assert_type(orders.merge(orders), ks.KStream[str, Order])
assert_type(orders.repartition(partitions=3), ks.KStream[str, Order])
assert_type(orders.to_table(materialized="latest"), ks.KTable[str, Order])
assert_type(orders.to_dataframe(), Any)
assert_type(orders.apply(Peek(function=print)), ks.KStream[Any, Any])
assert_type(orders.process(Shout), ks.KStream[str, bytes])
assert_type(orders.process_values(Length), ks.KStream[str, int])
assert_type(orders.process_values(Priced), ks.KStream[str, float])
assert_type(orders.map_values(language_of), ks.KStream[str, str])
assert_type(orders.filter(known), ks.KStream[str, Order])
assert_type(orders.map_batch(lambda table: table, value=float), ks.KStream[str, float])
assert_type(orders.deduplicate(60_000), ks.KStream[str, Order])
assert_type(orders.sample(0.1), ks.KStream[str, Order])
retry = ks.Retry(backoff="1s", max_delay=timedelta(minutes=5), on=TimeoutError)
assert_type(orders.map_values(total_of, retry=retry, park="orders-parked"), ks.KStream[str, float])
assert_type(orders.map_values(language_of, retry=retry), ks.KStream[str, str])
assert_type(orders.process_values(Length, retry=retry), ks.KStream[str, int])
assert_type(orders.delay(for_="10m"), ks.KStream[str, Order])
assert_type(orders.delay(until=ks.col("amount")), ks.KStream[str, Order])
assert_type(orders.throttle(100, per="1m"), ks.KStream[str, Order])
assert_type(orders.schedule(every=timedelta(minutes=1)), ks.KStream[str, Order])

# ---- whole records and headers


def seen_by(record: ks.RecordWithMetadata[str, Order]) -> list[tuple[str, bytes | None]]:
    assert_type(record.value, Order)
    assert_type(record.topic, str | None)
    return [*record.headers, ("seen-by", record.header("from"))]


assert_type(orders.filter(lambda record: record.offset > 1, with_record=True), ks.KStream[str, Order])
assert_type(orders.filter_not(lambda record: record.offset > 1, with_record=True), ks.KStream[str, Order])
assert_type(orders.map(lambda record: (record.offset, record.key), with_record=True), ks.KStream[int, str])
assert_type(orders.map_values(lambda record: record.value["shop"], with_record=True), ks.KStream[str, str])
assert_type(orders.flat_map(lambda record: [(record.offset, record.key)], with_record=True), ks.KStream[int, str])
assert_type(orders.flat_map_values(lambda record: [record.key], with_record=True), ks.KStream[str, str])
assert_type(orders.select_key(lambda record: record.timestamp, with_record=True), ks.KStream[int, Order])
assert_type(orders.peek(lambda record: None, with_record=True), ks.KStream[str, Order])
assert_type(orders.group_by(lambda record: record.partition, with_record=True), ks.KGroupedStream[int, Order])
assert_type(orders.map_headers(lambda headers: [*headers, ("a", "1")]), ks.KStream[str, Order])
assert_type(orders.map_headers(seen_by, with_record=True), ks.KStream[str, Order])
assert_type(orders.with_headers({"trace-id": ks.header("request-id")}, amount=1), ks.KStream[str, Order])
assert_type(orders.drop_headers("trace-id"), ks.KStream[str, Order])
assert_type(orders.map_values(ks.topic), ks.KStream[str, str])
assert_type(orders.map_values(ks.offset), ks.KStream[str, int])
orders.foreach(lambda record: None, with_record=True)
orders.split().branch(lambda record: record.header("a") == b"1", with_record=True).no_default_branch()

branches = orders.split(name="by-").branch(ks.col("amount") > 9, name="large").default_branch(name="small")
assert_type(branches, dict[str, ks.KStream[str, Order]])
assert_type(orders.split().branch(lambda key, order: True).no_default_branch(), dict[str, ks.KStream[str, Order]])
orders.foreach(lambda key, order: None)
orders.print(label="orders")
orders.to(lambda key, order, context: f"{order['shop']}-{context.partition}")
orders.to(ks.col("shop").cast(str))

# ---- grouping

grouped = orders.group_by_key()
assert_type(grouped, ks.KGroupedStream[str, Order])
assert_type(orders.group_by(lambda key, order: order["amount"]), ks.KGroupedStream[int, Order])
assert_type(orders.group_by(ks.col("shop"), key=str), ks.KGroupedStream[str, Order])
assert_type(grouped.count("counts"), ks.KTable[str, int])
assert_type(grouped.reduce(lambda old, new: new), ks.KTable[str, Order])
assert_type(grouped.aggregate(int, summed), ks.KTable[str, int])
assert_type(
    grouped.aggregate(list, lambda key, order, all_: [*all_, order], value=list[Order]), ks.KTable[str, list[Order]]
)
assert_type(grouped.aggregate(orders=ks.len(), amount=ks.col("amount").sum()), ks.KTable[str, Any])
assert_type(grouped.aggregate(shop=ks.col("shop").last(), amount=ks.len(), value=Order), ks.KTable[str, Order])

windowed = grouped.windowed_by(ks.TimeWindows(size=1000)).emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)
assert_type(windowed, ks.TimeWindowedKStream[str, Order])
assert_type(windowed.count(), ks.KTable[ks.Windowed[str], int])
assert_type(windowed.reduce(lambda old, new: new), ks.KTable[ks.Windowed[str], Order])
assert_type(windowed.aggregate(int, summed), ks.KTable[ks.Windowed[str], int])
assert_type(windowed.aggregate(orders=ks.len()), ks.KTable[ks.Windowed[str], Any])
assert_type(windowed.count().to_stream().map(lambda key, n: (key.key, n + key.window.start_ms)), ks.KStream[str, int])

sessions = grouped.windowed_by(ks.SessionWindows(gap=1000)).emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)
assert_type(sessions, ks.SessionWindowedKStream[str, Order])
assert_type(sessions.count(), ks.KTable[ks.Windowed[str], int])
assert_type(sessions.reduce(lambda old, new: new), ks.KTable[ks.Windowed[str], Order])
assert_type(sessions.aggregate(int, summed, merger=of_both), ks.KTable[ks.Windowed[str], int])
assert_type(sessions.aggregate(amount=ks.col("amount").max()), ks.KTable[ks.Windowed[str], Any])
assert_type(grouped.windowed_by(ks.SlidingWindows(difference=1000)).count(), ks.KTable[ks.Windowed[str], int])
assert_type(windowed.rate(1000), ks.KTable[ks.Windowed[str], float])
assert_type(grouped.top_n(3, lambda order: order["amount"]), ks.KTable[str, list[Order]])

visited = builder.stream("visits", key=str, value=int).group_by_key()
both = grouped.cogroup(summed).cogroup(visited, lambda key, visit, total: total + visit)
assert_type(both, ks.CogroupedKStream[str, int])
assert_type(both.aggregate(int), ks.KTable[str, int])
assert_type(both.windowed_by(ks.TimeWindows(size=1000)).aggregate(int), ks.KTable[ks.Windowed[str], int])

# ---- tables

assert_type(users.filter(lambda key, user: user["name"] != ""), ks.KTable[str, User])
assert_type(users.filter_not(ks.col("name") == "", materialized="named"), ks.KTable[str, User])
assert_type(users.map_values(lambda user: user["name"]), ks.KTable[str, str])
assert_type(users.map_values(lambda key, user: len(key), with_key=True), ks.KTable[str, int])
assert_type(users.map_values(ks.col("name"), value=str), ks.KTable[str, str])
assert_type(users.to_stream(), ks.KStream[str, User])
assert_type(users.to_stream(lambda key, user: len(key)), ks.KStream[int, User])
assert_type(windowed.count().suppress(ks.Suppressed.until_window_closes()), ks.KTable[ks.Windowed[str], int])
by_name = users.group_by(lambda key, user: (user["name"], 1))
assert_type(by_name, ks.KGroupedTable[str, int])
assert_type(users.group_by((ks.col("name"), ks.lit(1)), key=str, value=int), ks.KGroupedTable[str, int])
assert_type(by_name.count(), ks.KTable[str, int])
assert_type(by_name.reduce(lambda a, b: a + b, lambda a, b: a - b), ks.KTable[str, int])
assert_type(
    by_name.aggregate(float, lambda key, n, total: total + n, lambda key, n, total: total - n), ks.KTable[str, float]
)

assert_type(by_name.top_n(3, lambda n: n, value=int), ks.KTable[str, list[int]])
assert_type(users.expire(60_000), ks.KTable[str, User])
assert_type(users.transform_values(Named), ks.KTable[str, str])
sums = grouped.aggregate(int, summed)
assert_type(users.join(sums, lambda user, total: total), ks.KTable[str, int])
assert_type(users.left_join(sums, lambda user, total: user if total else None), ks.KTable[str, User])
assert_type(users.outer_join(sums, lambda user, total: user is None), ks.KTable[str, bool])
assert_type(users.join(sums, ks.struct(name=ks.col("name"), total=ks.right.value)), ks.KTable[str, Any])
assert_type(sums.join(users, lambda n, user: user["name"], foreign_key=str), ks.KTable[str, str])

# ---- joins


def named(user: User, visits: int) -> str:
    return f"{user['name']}: {visits}"


def perhaps(user: User, visits: int | None) -> float:
    return visits or 0.0


def either(user: User | None, visits: int | None) -> bool:
    return user is not None and visits is not None


visits = by_name.count()
assert_type(users.join(visits, named), ks.KTable[str, str])
assert_type(users.left_join(visits, perhaps, materialized="perhaps"), ks.KTable[str, float])
assert_type(users.outer_join(visits, either), ks.KTable[str, bool])
assert_type(users.join(visits, named, foreign_key=lambda user: user["name"]), ks.KTable[str, str])


class Initial(ks.FixedKeyProcessor[str, User, int]):
    pass


assert_type(users.transform_values(Initial), ks.KTable[str, int])

hour = ks.JoinWindows.of(3_600_000)
payments = builder.stream("payments", key=str, value=int)
assert_type(orders.join(payments, lambda order, paid: order["amount"] - paid, windows=hour), ks.KStream[str, int])
assert_type(orders.left_join(payments, lambda order, paid: paid, windows=hour), ks.KStream[str, int | None])
assert_type(orders.outer_join(payments, lambda order, paid: order, windows=hour), ks.KStream[str, Order | None])
assert_type(orders.join(payments, lambda key, order, paid: key, with_key=True, windows=hour), ks.KStream[str, str])
assert_type(orders.join(payments, lambda order, paid: order["amount"] - paid, retain=None), ks.KStream[str, int])
assert_type(orders.outer_join(payments, lambda order, paid: paid, retain=60_000), ks.KStream[str, int | None])
assert_type(orders.join(users, lambda order, user: user["name"]), ks.KStream[str, str])
assert_type(orders.left_join(users, lambda order, user: user), ks.KStream[str, User | None])
assert_type(orders.join(users, ks.struct(name=ks.right.col("name"), shop=ks.left.col("shop"))), ks.KStream[str, Any])
assert_type(
    orders.join(places, lambda order, place: place, key_selector=lambda key, order: len(key)), ks.KStream[str, str]
)
assert_type(
    orders.left_join(places, lambda key, order, place: place, key_selector=ks.col("amount"), with_key=True),
    ks.KStream[str, str | None],
)

# ---- async functions, batches, and what is made of other operators


async def score(order: Order) -> float:
    return order["amount"] / 100


async def scored(key: str, order: Order) -> tuple[int, float]:
    return order["amount"], 1.0


async def tags(order: Order) -> list[str]:
    return [order["shop"]]


async def stream_of_tags(order: Order) -> AsyncIterator[str]:
    yield order["shop"]


async def is_large(key: str, order: Order) -> bool:
    return order["amount"] > 100


assert_type(orders.map_values(score, concurrency=8, timeout=500), ks.KStream[str, float])
assert_type(orders.map_values(score, value=float, ordered="by_key"), ks.KStream[str, float])
assert_type(orders.map(scored), ks.KStream[int, float])
assert_type(orders.flat_map_values(tags), ks.KStream[str, str])
assert_type(orders.flat_map_values(stream_of_tags), ks.KStream[str, str])
assert_type(orders.filter(is_large, ordered=False), ks.KStream[str, Order])
assert_type(orders.select_key(is_large), ks.KStream[bool, Order])
assert_type(orders.map_batch(lambda table: table["amount"], value=int), ks.KStream[str, int])
assert_type(builder.stream("idle", key=str, value=int, idle=30_000), ks.KStream[str, int])
assert_type(orders.deduplicate(60_000, by=lambda key, order: order["shop"], key=str), ks.KStream[str, Order])
assert_type(orders.sample(0.1), ks.KStream[str, Order])
assert_type(orders.group_by_key().top_n(3, by=lambda order: order["amount"]), ks.KTable[str, list[Order]])
assert_type(by_name.top_n(3, by=lambda n: n, value=int), ks.KTable[str, list[int]])
assert_type(windowed.rate(per=1_000), ks.KTable[ks.Windowed[str], float])
assert_type(users.expire(after=60_000), ks.KTable[str, User])

# ---- stores


def described() -> None:
    ks.Stores.key_value("totals", key=str, value=int, store="memory", logging=False, caching=True)
    ks.Stores.timestamped_key_value("rows", key=str, value=Order, logging={"segment.bytes": "1048576"})
    ks.Stores.lru_map("recent", 100, key=str, value=int, logging=False)
    ks.Stores.window("hourly", 7_200_000, 3_600_000, key=str, value=int, retain_duplicates=True, caching=False)
    ks.Stores.timestamped_window("minutely", 120_000, 60_000, key=str, value=int, store="rocksdb")
    ks.Stores.session("visits", 60_000, key=str, value=int, caching=True)
    ks.Stores.versioned("prices", 60_000, key=str, value=float, logging=True)
    ks.Stores.key_value("totals", keys=str)  # type: ignore[call-arg]
    ks.Stores.timestamped_key_value("rows", store="disk")  # type: ignore[arg-type]
    ks.Stores.window("hourly", 7_200_000, 3_600_000, retain_duplicate=True)  # type: ignore[call-arg]
    ks.Stores.session("visits", 60_000, cached=True)  # type: ignore[call-arg]
    ks.Stores.versioned("prices", 60_000, logging="no")  # type: ignore[arg-type]
    ks.Stores.lru_map("recent", 100, store="rocksdb")  # type: ignore[call-arg]


def queries(streams: ks.KafkaStreams) -> None:
    totals = streams.store("totals")
    assert_type(totals.all(), list[tuple[Any, Any]])
    assert_type(totals.approximate_num_entries(), int)
    totals.put("a", 1)  # type: ignore[attr-defined]
    assert_type(totals, ks.ReadOnlyKeyValueStore)
    hourly = streams.store("hourly", ks.ReadOnlyWindowStore)
    assert_type(hourly.fetch("a", 0, 10), list[tuple[int, Any]])
    assert_type(hourly.fetch_all(0, 10), list[tuple[ks.Windowed[Any], Any]])
    assert_type(hourly.fetch("a"), list[tuple[int, Any]])
    assert_type(hourly.fetch("a", NOON, NOON + timedelta(hours=1)), list[tuple[int, Any]])
    hourly.fetch("a", "noon")  # type: ignore[arg-type]
    visits = streams.store("visits", ks.ReadOnlySessionStore)
    assert_type(visits.fetch("a"), list[tuple[ks.Windowed[Any], Any]])
    visits.get("a")  # type: ignore[attr-defined]
    prices = streams.store("prices", ks.ReadOnlyVersionedStore)
    assert_type(prices.get("a", as_of=5), VersionedRecord | None)
    assert_type(prices.history("a", NOON), list[VersionedRecord])
    prices.get("a", as_of=0.5)  # type: ignore[arg-type]
    asked = streams.query("hourly", ks.WindowKeyQuery("a", NOON), bound={TopicPartition("in", 0): 5})
    assert_type(asked.partitions[0].failure, ks.FailureReason | None)
    streams.query("hourly", "a")  # type: ignore[arg-type]
