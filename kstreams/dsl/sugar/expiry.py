"""Expiry: rows of a table that were not updated for a time are deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kstreams.processor.api.contexts import FixedKeyProcessorContext
from kstreams.processor.api.processor import FixedKeyProcessor
from kstreams.processor.api.punctuation import NEVER, PunctuationType
from kstreams.record import FixedKeyRecord
from kstreams.serdes import Serde
from kstreams.state.api import StoreBuilder
from kstreams.state.stores import Stores


@dataclass(frozen=True, slots=True)
class Expiry:
    """Makes the processors, and brings their stores: the last update of every key, and the keys by that time.

    Parameters
    ----------
    store : str
        Starts the names of both stores.
    after_ms : int
    serde : Serde
        Of the keys.
    """

    store: str
    after_ms: int
    serde: Serde[Any]

    def stores(self) -> tuple[StoreBuilder, StoreBuilder]:
        """Times of keys, and keys by time."""
        updated = Stores.key_value(self.store, key=self.serde, value=int)
        retention = 2 * self.after_ms + 1
        return updated, Stores.window(f"{self.store}-times", retention, size=1, key=self.serde, value=bytes)

    def __call__(self) -> FixedKeyProcessor[Any, Any, Any]:
        return _Expire(self)


class _Expire(FixedKeyProcessor[Any, Any, Any]):
    """Passes updates on, and deletions of what has expired, in the order of their times."""

    def __init__(self, settings: Expiry) -> None:
        self._settings = settings
        self._next_ms = 0  # no key expires before

    def init(self, context: FixedKeyProcessorContext) -> None:
        self._context = context
        self._updated = context.get_state_store(self._settings.store)
        self._by_time = context.get_state_store(f"{self._settings.store}-times")
        context.schedule(1, PunctuationType.STREAM_TIME, self._expire_until)

    def process(self, record: FixedKeyRecord[Any, Any]) -> None:
        now_ms = self._context.current_stream_time_ms()
        self._expire_until(now_ms)
        expires_ms = record.timestamp + self._settings.after_ms
        if record.value is None or expires_ms <= now_ms:
            self._updated.delete(record.key)
            record = record.with_value(None)
        else:
            self._updated.put(record.key, record.timestamp)
            self._by_time.put(record.key, b"", record.timestamp)
            self._next_ms = min(self._next_ms, expires_ms)
        self._context.forward(record)

    def _expire_until(self, now_ms: int) -> None:
        if now_ms < self._next_ms:
            return
        after_ms = self._settings.after_ms
        due = list(self._by_time.started_between(0, now_ms - after_ms)) if now_ms >= after_ms else []
        for (key, (updated_ms, _)), _ in due:
            self._by_time.put(key, None, updated_ms)
            if self._updated.get(key) == updated_ms:
                self._updated.delete(key)
                self._context.forward(FixedKeyRecord(key=key, value=None, timestamp=updated_ms + after_ms))
        first = next(iter(self._by_time.started_between(0, NEVER // 2)), None)
        self._next_ms = NEVER if first is None else first[0][1][0] + after_ms
