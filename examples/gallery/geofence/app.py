"""Geofences: a vehicle enters or leaves an area. Areas come from a topic, so they change while the application runs."""

import math

import msgspec

import kstreams as ks

METERS_PER_DEGREE = 111_320


class Area(msgspec.Struct, frozen=True):
    latitude: float
    longitude: float
    radius: float  # meters


class Position(msgspec.Struct, frozen=True):
    latitude: float
    longitude: float


class Crossing(msgspec.Struct, frozen=True):
    area: str
    enters: bool


def is_inside(position: Position, area: Area) -> bool:
    """Return True if a position is in an area; on a plane, which is right for some kilometers."""
    north = (position.latitude - area.latitude) * METERS_PER_DEGREE
    east = (position.longitude - area.longitude) * METERS_PER_DEGREE * math.cos(math.radians(area.latitude))
    return math.hypot(north, east) <= area.radius


class Crossings(ks.FixedKeyProcessor[str, Position, Crossing]):
    """Forwards a crossing for each area that a vehicle enters or leaves."""

    @classmethod
    def stores(cls) -> list[ks.StoreBuilder]:
        return [ks.Stores.key_value("areas-of-vehicles", key=str, value=list[str])]

    def init(self, context: ks.FixedKeyProcessorContext[str, Crossing]) -> None:
        self.context = context
        self.areas = context.get_state_store("areas")
        self.inside = context.get_state_store("areas-of-vehicles")

    def process(self, record: ks.FixedKeyRecord[str, Position]) -> None:
        before = set(self.inside.get(record.key) or ())
        now = {name for name, row in self.areas.all() if is_inside(record.value, row.value)}
        for name in sorted(before ^ now):
            self.context.forward(record.with_value(Crossing(name, name in now)))
        self.inside.put(record.key, sorted(now))


config = {"application.id": "geofence"}
topology = ks.StreamsBuilder()

topology.global_table("areas", key=str, value=Area, materialized="areas")
positions = topology.stream("positions", key=str, value=Position)
positions.process_values(Crossings, value=Crossing).to("crossings")
