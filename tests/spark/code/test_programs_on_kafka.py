"""What `explain --code` prints, run by plain PySpark over a real Kafka, gives the records of the native engine."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from kstreams import app as application
from tests.spark.code import orders
from tests.spark.code.orders import Address, Customer, Either, Order, Paid, Parcel, Payment, Shipment
from tests.spark.code.plain_pyspark import run_program
from tests.spark.running import Application, Row
from tests.support.kafka_topics import delete_everything

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(900)]

START = 1_600_000_000_000
SECOND = 1_000
CUSTOMERS = [f"customer-{number}" for number in range(8)]
ITEMS = ["apple", "brød", "crème", "straße"]
INPUTS = {
    "orders": (str, Order),
    "payments": (str, Payment),
    "customers": (str, Customer),
    "articles": (str, Customer),
    "shipments": (str, Shipment),
}
STATELESS = ["noted", "plain", "costs", "silent", "greeted", "greeted-valued", "described"]
STATELESS += ["shipped", "arrivals", "parcels", "parcels-of-shipments", "valued", "raised", "last-payments"]
REORDERED = ["by-item", "by-amount", "small-or-other"]
"""Topics in which records of several tasks or branches meet, in no particular order."""
UPDATES = ["totals", "counts", "minutes", "hops", "many", "doubled"]
FINAL = ["closed-minutes", "sessions", "paid", "pairs"]
LEFT_JOIN = "perhaps-paid"
OUTER_JOIN = "either"


def rows(seed: int, count: int) -> list[Row]:
    """Orders and payments of some minutes, at most five seconds late; at the end, one much later for each customer."""
    draw = random.Random(seed)
    table = [Row("customers", name, Customer(name.upper(), 3), START) for name in CUSTOMERS[:6]]
    table += [Row("customers", name, Customer(name.upper(), n % 3), START) for n, name in enumerate(CUSTOMERS[:5])]
    table += [Row("customers", CUSTOMERS[5], None, START)]
    table += [Row("articles", item, Customer(f"a {item}", 2), START) for item in ITEMS[:3]]
    records = []
    for number in range(count):
        time_ms = START + number * 400 - draw.randrange(5 * SECOND) + 10 * SECOND
        customer = draw.choice(CUSTOMERS)
        records.append(Row("orders", customer, _order(draw), time_ms))
        if draw.random() < 0.2:
            records.append(Row("shipments", customer, _shipment(draw, time_ms), time_ms))
            records.append(Row("payments", None, Payment(number), time_ms))
        if draw.random() < 0.5:
            records.append(
                Row("payments", customer, Payment(draw.randrange(100)), time_ms + draw.randrange(4 * SECOND))
            )
    end_ms = START + count * 400 + 3_600 * SECOND
    for name in CUSTOMERS:
        records += [Row("orders", name, _order(draw), end_ms), Row("payments", name, Payment(1), end_ms)]
    return table + records


def _order(draw: random.Random) -> Order:
    note = draw.choice([None, "", "é", 'say "no"\n', "\\"])
    address = draw.choice([None, Address("Oslo"), Address("Köln", "Am Ufer 1")])
    return Order(draw.choice(ITEMS), draw.randrange(20), draw.randrange(1, 4_000) / 8, note, ["a"], address)


def _shipment(draw: random.Random, time_ms: int) -> Shipment:
    zone = draw.choice([None, UTC, timezone(timedelta(hours=2)), timezone(-timedelta(hours=9, minutes=30))])
    sent = datetime.fromtimestamp(time_ms / 1_000, UTC).astimezone(zone).replace(tzinfo=zone)
    parcels = [Parcel(draw.randrange(5), draw.choice([None, sent])) for _ in range(draw.randrange(3))]
    stops = {draw.choice(ITEMS): sent + timedelta(microseconds=draw.randrange(10**8)) for _ in range(draw.randrange(3))}
    price = draw.choice([Decimal("12.50"), Decimal(3), Decimal("-0.001")])
    return Shipment(sent, draw.choice([None, sent.date()]), price, draw.choice(["letter", "parcel"]), parcels, stops)


@pytest.fixture(scope="module")
def results(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Application:
    """The topics after a run of the native engine and a run of the program."""
    folder = tmp_path_factory.mktemp("code")
    delete_everything(kafka.bootstrap_servers)
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "spark.kstreams.checkpoint": str(folder / "checkpoint")}
    outputs = [*STATELESS, *REORDERED, *UPDATES, *FINAL, LEFT_JOIN, OUTER_JOIN]
    app = Application(None, folder, orders.topology, INPUTS | dict.fromkeys(outputs, (bytes, bytes)), **settings)
    app.create(*INPUTS, *outputs, *(f"spark-{topic}" for topic in outputs))
    app.write(rows(1, 600))
    app.run_natively(until_end=False)
    program = folder / "program.py"
    program.write_text(application.code(application.load_app(orders.__file__, settings)))
    finished = run_program(program)
    assert finished.returncode == 0, finished.stderr[-5_000:]
    return app


@pytest.mark.parametrize("topic", STATELESS)
def test_stateless_operators_write_the_same_records_in_the_same_partitions(results: Application, topic: str) -> None:
    assert _by_key(results, topic, "spark-") == _by_key(results, topic, "")


@pytest.mark.parametrize("topic", REORDERED)
def test_records_of_several_tasks_are_in_the_same_partitions(results: Application, topic: str) -> None:
    found = [Counter((key, value) for key, value, _ in records) for records in results.partitions(topic)]
    expected = [Counter((key, value) for key, value, _ in records) for records in results.partitions(topic, "")]
    assert found == expected


@pytest.mark.parametrize("topic", UPDATES)
def test_the_last_update_of_every_key_is_the_same(results: Application, topic: str) -> None:
    last = {key: value for key, value, _ in results.rows(topic, "")}
    found, expected = results.table(topic), {key: value for key, value in last.items() if value is not None}
    assert found == expected
    assert expected


@pytest.mark.parametrize("topic", FINAL)
def test_windows_and_joins_write_the_same_results(results: Application, topic: str) -> None:
    found = Counter((key, value) for key, value, _ in results.rows(topic))
    expected = Counter((key, value) for key, value, _ in results.rows(topic, ""))
    assert found == expected
    assert expected


def _by_key(results: Application, topic: str, prefix: str) -> list[dict[bytes, list[bytes]]]:
    """The values of each key in order, by partition."""
    partitions = []
    for records in results.partitions(topic, prefix):
        values: dict[bytes, list[bytes]] = {}
        for key, value, _ in records:
            values.setdefault(key, []).append(value)
        partitions.append(values)
    assert any(partitions)
    return partitions


def test_a_left_join_gives_each_pair_and_each_record_without_a_match_once(results: Application) -> None:
    """kstreams, as Kafka Streams, also gives late orders without a payment at once, if one still comes."""
    records = rows(1, 600)
    payments = [row for row in records if row.topic == "payments"]
    expected = Counter[tuple[bytes, bytes]]()
    for order in (row for row in records if row.topic == "orders"):
        of_order = [
            row for row in payments if row.key == order.key and abs(row.timestamp - order.timestamp) <= 2 * SECOND
        ]
        paid = [row.value.paid for row in of_order] or [None]
        expected.update((order.key.encode(), _paid(order.value, amount)) for amount in paid)
    found = Counter((key, value) for key, value, _ in results.rows(LEFT_JOIN))
    native = Counter((key, value) for key, value, _ in results.rows(LEFT_JOIN, ""))
    assert found == expected
    assert not expected - native
    assert all(b'"paid":null' in value for _, value in native - expected)


def test_an_outer_join_gives_each_pair_and_each_record_without_a_match_once(results: Application) -> None:
    records = rows(1, 600)
    payments = [row for row in records if row.topic == "payments"]
    orders_ = [row for row in records if row.topic == "orders"]
    pairs = [
        (order, payment)
        for order in orders_
        for payment in payments
        if payment.key == order.key and abs(payment.timestamp - order.timestamp) <= 2 * SECOND
    ]
    matched = {id(row) for pair in pairs for row in pair}
    expected = Counter(
        (order.key.encode(), _either(order.value.amount, payment.value.paid)) for order, payment in pairs
    )
    expected.update((row.key.encode(), _either(row.value.amount, None)) for row in orders_ if id(row) not in matched)
    alone = [row for row in payments if id(row) not in matched]
    expected.update((row.key and row.key.encode(), _either(None, row.value.paid)) for row in alone)
    found = Counter((key, value) for key, value, _ in results.rows(OUTER_JOIN))
    native = Counter((key, value) for key, value, _ in results.rows(OUTER_JOIN, ""))
    assert found == expected
    assert not expected - native
    assert all(b"null" in value for _, value in native - expected)


def _either(amount: int | None, paid: int | None) -> bytes:
    return msgspec.json.encode(Either(amount, paid))


def _paid(order: Order, amount: int | None) -> bytes:
    return msgspec.json.encode(Paid(order.item, order.amount, amount))
