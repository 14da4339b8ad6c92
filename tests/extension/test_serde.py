"""A serde of an application's own, for keys and for values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kstreams as ks
from kstreams.errors import SerdeError
from kstreams.log import open_log
from kstreams.serdes import Serde, SerdeKind, register_serde, serde_named, serde_of, type_name
from kstreams.serdes.arrow_types import typed_column
from kstreams.testing import TopologyTestDriver
from tests.extension.two_runs import Updates, natively, on_driver, on_spark
from tests.spark.running import Row

_ZERO = 2**63


@dataclass(frozen=True)
class Money:
    cents: int


class MoneySerde(Serde[Money]):
    """Cents in 8 bytes whose order is that of the amounts, debts included."""

    type = Money
    arrow_type = pa.int64()

    def serialize(self, value: Money) -> bytes:
        if not isinstance(value, Money):
            raise SerdeError(f"{value!r} is no Money")
        return (value.cents + _ZERO).to_bytes(8, "big")

    def deserialize(self, data: bytes) -> Money:
        return Money(int.from_bytes(data, "big") - _ZERO)

    def decode_column(self, column: pa.Array) -> pa.Array:
        return pa.array([None if row is None else row.cents for row in self.decode_rows(column)], self.arrow_type)

    def encode_column(self, column: pa.Array) -> pa.Array:
        return self.encode_rows([None if cents is None else Money(cents) for cents in column.to_pylist()])


MONEY = SerdeKind(
    serde=MoneySerde,
    default=MoneySerde(),
    same_bytes_when_equal=lambda serde: True,
    immutable=lambda serde: True,
    name="acme.money",
)
register_serde(MONEY)

TYPES = {"in": (str, Money), "out": (Money, int), "sums": (str, Money)}
ROWS = [Row("in", "ab"[i % 2], Money((i * 37 % 11) - 5), i) for i in range(24)]


def counts() -> ks.Topology:
    """How often each amount was paid: Money is the key of a repartition topic, a store and an output."""
    builder = ks.StreamsBuilder()
    amounts = builder.stream("in", key=str, value=Money).group_by(lambda name, amount: amount, key=Money)
    amounts.count("by-amount").to_stream().to("out")
    return builder.build()


def sums() -> ks.Topology:
    """What each has paid: Money is the value of a store and an output."""
    builder = ks.StreamsBuilder()
    paid = builder.stream("in", key=str, value=Money).group_by_key()
    paid.reduce(lambda total, amount: Money(total.cents + amount.cents)).to_stream().to("sums")
    return builder.build()


def expected_counts() -> Updates:
    updates: Updates = {}
    for row in ROWS:
        seen = updates.setdefault(row.value, [])
        seen.append((len(seen) + 1, row.timestamp))
    return updates


def expected_sums() -> Updates:
    updates: Updates = {}
    for row in ROWS:
        seen = updates.setdefault(row.key, [])
        seen.append((Money(row.value.cents + (seen[-1][0].cents if seen else 0)), row.timestamp))
    return updates


def test_on_the_test_driver() -> None:
    assert on_driver(counts(), TYPES, ROWS) == expected_counts()
    assert on_driver(sums(), TYPES, ROWS, "sums") == expected_sums()


def test_keys_natively_with_restarts(tmp_path: Path) -> None:
    assert _amounts(natively(tmp_path, counts(), TYPES, ROWS)) == _amounts(expected_counts())
    with open_log(tmp_path / "log") as log, log.admin() as admin:
        settings = admin.describe_topic("out").config
    assert settings["kstreams.key.type"] == "acme.money"


def test_values_natively_with_restarts(tmp_path: Path) -> None:
    assert natively(tmp_path, sums(), TYPES, ROWS, "sums") == expected_sums()


@pytest.mark.spark
def test_keys_on_spark(spark: Any, tmp_path: Path) -> None:
    assert _amounts(on_spark(spark, tmp_path, counts(), TYPES, ROWS)) == _amounts(expected_counts())


@pytest.mark.spark
def test_values_on_spark(spark: Any, tmp_path: Path) -> None:
    assert on_spark(spark, tmp_path, sums(), TYPES, ROWS, "sums") == expected_sums()


def _amounts(updates: Updates) -> dict[Money, list[Any]]:
    """The values alone: two partitions of the input may reach a repartition topic in any order."""
    return {key: [value for value, _ in values] for key, values in updates.items()}


def test_a_store_orders_its_keys_by_amount() -> None:
    driver = TopologyTestDriver(counts())
    records = driver.create_input_topic("in", key=str, value=Money)
    for cents in (3, -5, 0, -2, 3):
        records.pipe_input("a", Money(cents))
    store = driver.get_key_value_store("by-amount")
    assert [(key.cents, count) for key, count in store.all()] == [(-5, 1), (-2, 1), (0, 1), (3, 2)]
    assert [key.cents for key, _ in store.range(Money(-3), Money(1))] == [-2, 0]


def test_it_is_found_by_its_type_and_by_its_name() -> None:
    assert isinstance(serde_of(Money), MoneySerde)
    assert type_name(MoneySerde()) == "acme.money"
    assert isinstance(serde_named("acme.money"), MoneySerde)


def test_tables_of_delta_have_its_column() -> None:
    column = MoneySerde().encode_rows([Money(5), None, Money(-1)])
    assert typed_column(MoneySerde(), column) == pa.array([5, None, -1], pa.int64())


def test_another_process_guesses_what_it_does_not_know(tmp_path: Path) -> None:
    with open_log(tmp_path) as log, log.admin() as admin:
        admin.create_topic("payments", 1, {"kstreams.value.type": "acme.coins"})
        assert admin.describe_topic("payments").config["kstreams.value.type"] == "acme.coins"


def test_what_is_registered_twice_is_refused() -> None:
    with pytest.raises(SerdeError, match="MoneySerde is registered already"):
        register_serde(MONEY)

    class OtherSerde(MoneySerde):
        pass

    with pytest.raises(SerdeError, match=r"a serde is called 'acme.money' already: give OtherSerde another name"):
        register_serde(SerdeKind(serde=OtherSerde, name="acme.money"))
    with pytest.raises(SerdeError, match="'money' cannot name a serde: join lower-case words with dots"):
        register_serde(SerdeKind(serde=OtherSerde, name="money"))
