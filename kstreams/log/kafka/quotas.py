"""Quotas of client ids in a Kafka cluster: requests that read and change them, and the delays of a client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kstreams.errors import LogError
from kstreams.log.api import Throttling
from kstreams.log.kafka.broker_requests import BrokerRequests, Decoder, Encoder, raise_error

_DESCRIBE_CLIENT_QUOTAS = 48
_ALTER_CLIENT_QUOTAS = 49
_CLIENT_ID = "client-id"
_ANY_NAME = 2
Entity = dict[str, str | None]


def read_quotas(broker: BrokerRequests) -> dict[str | None, dict[str, float]]:
    """Return the quotas by client id; None is the default. Those of users are left out."""
    body = Encoder().int32(1).text(_CLIENT_ID).int8(_ANY_NAME).text(None).int8(1)
    response = broker.request(_DESCRIBE_CLIENT_QUOTAS, 0, body)
    response.int32()  # the throttle time
    code = response.int16()
    raise_error("The quotas cannot be read", code, response.text())
    entries = (_read_entry(response) for _ in range(max(0, response.int32())))
    return {entity[_CLIENT_ID]: quotas for entity, quotas in entries if list(entity) == [_CLIENT_ID]}


def alter_quotas(broker: BrokerRequests, client_id: str | None, quotas: Mapping[str, float | None]) -> None:
    """Set quotas of a client id, or of the default; None removes one."""
    body = Encoder().int32(1).int32(1).text(_CLIENT_ID).text(client_id).int32(len(quotas))
    for name, rate in quotas.items():
        body.text(name).float64(rate or 0.0).int8(int(rate is None))
    response = broker.request(_ALTER_CLIENT_QUOTAS, 0, body.int8(0))  # not only validated
    response.int32()  # the throttle time
    if response.int32() != 1:
        raise LogError("A broker answered a change of quotas with an illegal response.")
    code = response.int16()
    raise_error(f"The quotas of {client_id or 'the default'} cannot be changed", code, response.text())


def _read_entry(response: Decoder) -> tuple[Entity, dict[str, float]]:
    entity: Entity = {}
    for _ in range(response.int32()):
        kind = response.text() or ""
        entity[kind] = response.text()
    quotas: dict[str, float] = {}
    for _ in range(response.int32()):
        name = response.text() or ""
        quotas[name] = response.float64()
    return entity, quotas


class _ThrottleEvent(Protocol):
    """The event of Kafka's client for a response that a broker has delayed."""

    throttle_time: float


class ThrottleTimes:
    """The delays of one client by the quotas of its brokers, from the events of Kafka's client.

    Examples
    --------
    >>> times = ThrottleTimes()
    >>> times.throttling()
    Throttling(remaining_ms=0, responses=0, total_ms=0, greatest_ms=0)
    """

    def __init__(self) -> None:
        self._responses = 0
        self._total_ms = 0
        self._greatest_ms = 0

    def record(self, event: _ThrottleEvent) -> None:
        """Record an event, which the client passes in its `poll`."""
        delay_ms = round(event.throttle_time * 1000)
        if delay_ms > 0:
            self._responses += 1
            self._total_ms += delay_ms
            self._greatest_ms = max(self._greatest_ms, delay_ms)

    def throttling(self) -> Throttling:
        """Return the delays so far."""
        return Throttling(0, self._responses, self._total_ms, self._greatest_ms)
