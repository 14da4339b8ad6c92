"""Alerts with hysteresis: raised above 80 percent and cleared below 70, so that they do not flicker in between."""

import msgspec

import kstreams as ks

RAISE_ABOVE = 80
CLEAR_BELOW = 70


class Alert(msgspec.Struct, frozen=True):
    is_raised: bool
    percent: int


class Hysteresis(ks.FixedKeyProcessor[str, int, Alert]):
    """Forwards the changes of the alert of each machine."""

    @classmethod
    def stores(cls) -> list[ks.StoreBuilder]:
        return [ks.Stores.key_value("alerts", key=str, value=bool)]

    def init(self, context: ks.FixedKeyProcessorContext[str, Alert]) -> None:
        self.context = context
        self.alerts = context.get_state_store("alerts")

    def process(self, record: ks.FixedKeyRecord[str, int]) -> None:
        was_raised = self.alerts.get(record.key) or False
        is_raised = record.value >= CLEAR_BELOW if was_raised else record.value > RAISE_ABOVE
        if is_raised != was_raised:
            self.alerts.put(record.key, is_raised)
            self.context.forward(record.with_value(Alert(is_raised, record.value)))


config = {"application.id": "alerting"}
topology = ks.StreamsBuilder()

usage = topology.stream("disk-usage", key=str, value=int)
usage.process_values(Hysteresis, value=Alert).to("alerts")
