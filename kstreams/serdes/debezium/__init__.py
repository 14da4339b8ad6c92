"""Change events of Debezium: `Debezium`."""

from kstreams.serdes.debezium.debezium import Debezium

__all__ = ["Debezium"]
