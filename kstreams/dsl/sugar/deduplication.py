"""Deduplication: forwards the first of the records with equal deduplication keys within a time."""

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


def key_of(key: object, value: object) -> object:
    """Return the key, which is the deduplication key unless the user names another part of records."""
    return key


@dataclass(frozen=True, slots=True)
class Deduplication:
    """Supplies the processors of `deduplicate`, and the store of the deduplication keys.

    Parameters
    ----------
    store : str
    within_ms : int
        The greatest time difference of duplicates.
    part : callable
        `(key, value) -> deduplication key`; records with None are always forwarded.
    serde : Serde
        Serde of the deduplication keys.
    """

    store: str
    within_ms: int
    part: Callable[[Any, Any], Any]
    serde: Serde

    def stores(self) -> tuple[StoreBuilder]:
        """Return the store of deduplication keys by time."""
        size = max(self.within_ms, 1)
        return (Stores.window(self.store, retention=self.retention_ms, size=size, key=self.serde, value=bytes),)

    @property
    def retention_ms(self) -> int:
        """How long deduplication keys are retained, in stream time."""
        return 2 * max(self.within_ms, 1) + 1

    def __call__(self) -> FixedKeyProcessor:
        return _Deduplicate(self)


class _Deduplicate(FixedKeyProcessor):
    def __init__(self, settings: Deduplication) -> None:
        self._settings = settings

    def init(self, context: FixedKeyProcessorContext) -> None:
        self._context = context
        self._store = context.get_state_store(self._settings.store)

    def process(self, record: FixedKeyRecord) -> None:
        part = self._settings.part(record.key, record.value)
        if part is not None:
            if self._is_duplicate(part, record.timestamp):
                return
            self._store.put(part, b"", record.timestamp)
        self._context.forward(record)

    def _is_duplicate(self, part: object, timestamp: int) -> bool:
        first = max(0, timestamp - self._settings.within_ms)
        last = timestamp + self._settings.within_ms
        return next(iter(self._store.fetch(part, first, last)), None) is not None
