"""The contracts of sources and sinks, on two small systems."""

from pathlib import Path

from kstreams.connectors import Sink, Source
from kstreams.testing.connectors import Order, SinkContract, SourceContract, order_batch
from tests.connectors.systems import Database, Numbered, orders_in


class TestNumbered(SourceContract):
    def source(self, folder: Path) -> Source:
        return Numbered(25, batch=10)

    def rows(self, folder: Path) -> list[object]:
        return order_batch(range(50)).values.to_pylist()


class TestDatabase(SinkContract):
    def sink(self, folder: Path) -> Sink:
        return Database(folder / "orders.db")

    def orders(self, folder: Path) -> list[Order]:
        return orders_in(folder / "orders.db")
