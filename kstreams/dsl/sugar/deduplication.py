"""Deduplication: of records with the same mark within a time, the first goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kstreams.processor.api.contexts import FixedKeyProcessorContext
from kstreams.processor.api.processor import FixedKeyProcessor
from kstreams.record import FixedKeyRecord
from kstreams.serdes import Serde
from kstreams.state.api import StoreBuilder
from kstreams.state.stores import Stores


@dataclass(frozen=True, slots=True)
class Deduplication:
    """Makes the processors, and brings the store in which they keep what they have seen.

    Parameters
    ----------
    store : str
    within_ms : int
        How far apart in time two records with one mark are still the same.
    mark : callable
        `(key, value)` -> what must not come twice; None: nothing is known of the record.
    serde : Serde
        Of the marks.
    """

    store: str
    within_ms: int
    mark: Callable[[Any, Any], Any]
    serde: Serde

    def stores(self) -> tuple[StoreBuilder]:
        """Marks by time, kept as long as a duplicate may come."""
        size = max(self.within_ms, 1)
        return (Stores.window(self.store, retention=self.retention_ms, size=size, key=self.serde, value=bytes),)

    @property
    def retention_ms(self) -> int:
        """How long marks are kept, in stream time."""
        return 2 * max(self.within_ms, 1) + 1

    def __call__(self) -> FixedKeyProcessor:
        return _Deduplicate(self)


class _Deduplicate(FixedKeyProcessor):
    def __init__(self, settings: Deduplication) -> None:
        self._settings = settings

    def init(self, context: FixedKeyProcessorContext) -> None:
        self._context = context
        self._seen = context.get_state_store(self._settings.store)

    def process(self, record: FixedKeyRecord) -> None:
        mark = self._settings.mark(record.key, record.value)
        if mark is not None:
            if self._was_seen(mark, record.timestamp):
                return
            self._seen.put(mark, b"", record.timestamp)
        self._context.forward(record)

    def _was_seen(self, mark: object, timestamp: int) -> bool:
        first = max(0, timestamp - self._settings.within_ms)
        last = timestamp + self._settings.within_ms
        return next(iter(self._seen.fetch(mark, first, last)), None) is not None
