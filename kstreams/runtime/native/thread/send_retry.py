"""`SendRetry`: sends batches again while a topic has no room for them, if the production handler wants it."""

from __future__ import annotations

import logging
from typing import Any

from kstreams.errors import BufferFullError
from kstreams.kernel.batch import Batch
from kstreams.kernel.clock import Clock
from kstreams.log.api import OnDelivery, Producer
from kstreams.processor.api.error_handlers import ErrorHandlerContext, Result, handler_of
from kstreams.record import ProducerRecord

logger = logging.getLogger(__name__)


class SendRetry:
    """The retries of one thread.

    Parameters
    ----------
    production_handler : object
        The setting `production.exception.handler`; its handler says whether to retry. It cannot drop a batch here: a
        batch without room is sent again, or ends the thread.
    timeout_ms : int
        Time after which a batch is not sent again.
    clock : Clock
    """

    def __init__(self, production_handler: Any, timeout_ms: int, clock: Clock) -> None:
        self._handler = handler_of(production_handler, None)
        self._timeout_ms = timeout_ms
        self._clock = clock

    def send(self, producer: Producer, batch: Batch, on_delivery: OnDelivery | None = None) -> None:
        """Send a batch; each attempt takes up to the producer's `max.block.ms`.

        Raises
        ------
        BufferFullError
            When the buffer has no room for the batch, and it is not sent again.
        """
        started_ms = self._clock.uptime_ms()
        while True:
            try:
                return producer.send_batch(batch, on_delivery)
            except BufferFullError as error:
                if self._clock.uptime_ms() - started_ms >= self._timeout_ms or not self._wants_retry(batch, error):
                    raise
                logger.warning("%s takes no records for the time being, sending again: %s", batch.source, error)

    def _wants_retry(self, batch: Batch, error: BufferFullError) -> bool:
        first: Any = next(batch.rows())
        record = ProducerRecord(batch.source.topic, first.key, first.value, first.timestamp, first.headers)
        return self._handler(ErrorHandlerContext(), record, error).result is Result.RETRY
