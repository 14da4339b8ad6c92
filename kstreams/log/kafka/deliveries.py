"""`Deliveries`: what became of sent records: callbacks in the order of sending, and the first failure."""

from __future__ import annotations

from collections import deque
from typing import Any

from confluent_kafka import KafkaError

from kstreams.batch import TopicPartition
from kstreams.errors import LogError
from kstreams.log.api import Delivery, OnDelivery
from kstreams.log.kafka.failures import log_error

_DROPPED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)


class PendingDelivery:
    """A record or a batch whose sender wants to be told."""

    def __init__(self, source: TopicPartition, count: int, on_delivery: OnDelivery) -> None:
        self._source = source
        self._count = count
        self.on_delivery = on_delivery
        self._missing = count
        self._first = -1
        self._error: LogError | None = None

    @property
    def is_known(self) -> bool:
        """Whether all its records were delivered or have failed."""
        return self._missing == 0

    def delivery(self) -> Delivery:
        """What became of it."""
        first = self._first if self._error is None else -1
        return Delivery(self._source, first, self._count, self._error)

    def delivered(self, offset: int, error: LogError | None) -> None:
        """One of its records was delivered or has failed."""
        self._missing -= 1
        self._first = offset if self._first < 0 else min(self._first, offset)
        self._error = self._error or error

    def fail(self, error: LogError) -> None:
        """It was never sent."""
        self._missing = 0
        self._error = error


class Deliveries:
    """What became of what one producer has sent."""

    def __init__(self) -> None:
        self._waiting: deque[PendingDelivery] = deque()
        self.error: LogError | None = None
        """The first failure since it was taken last."""
        self.spoilt: LogError | None = None
        """The first failure of the transaction."""

    def expect(self, source: TopicPartition, count: int, on_delivery: OnDelivery) -> PendingDelivery:
        """Something was sent whose sender wants to be told."""
        pending = PendingDelivery(source, count, on_delivery)
        self._waiting.append(pending)
        return pending

    def note(self, error: LogError) -> None:
        """Something could not be written."""
        self.error = self.error or error
        self.spoilt = self.spoilt or error

    def report(self, error: Any, message: Any, pending: PendingDelivery | None = None) -> None:
        """The client's report of one record."""
        failure = None
        if error is not None:
            failure = log_error(f"A record for {message.topic()}-{message.partition()} was not written", error)
            if error.code() not in _DROPPED:
                self.note(failure)
        if pending is not None:
            pending.delivered(message.offset(), failure)

    def take_error(self) -> LogError | None:
        """The first failure since the last call."""
        error, self.error = self.error, None
        return error

    def call_back(self) -> None:
        """Tell the senders whose turn it is; what one of them raises keeps none from being told by the next call."""
        while self._waiting and self._waiting[0].is_known:
            pending = self._waiting.popleft()
            pending.on_delivery(pending.delivery())
