"""Window stores that retain duplicates: the records of one side of a stream-stream join, by key and time."""

from __future__ import annotations

from typing import Any

from kstreams.state.kinds.keyed_window_store import KeyedWindowStore


class JoinWindowStore(KeyedWindowStore):
    """All values by key and start, in the order of their puts (see `WindowStore`); time is the start.

    A value is told from its twins by a sequence number, counted within its key and start: what a put does is then
    decided by the content of the store alone, and a replay writes the same bytes.
    """

    def put(self, key: Any, value: Any, start_ms: int) -> None:
        """Add a value; None is no value and changes nothing, nor does one that has expired."""
        if value is None or not self._observe(start_ms):
            return
        live = self._key(key)
        self._groups.put(live, (start_ms, self._groups[live].after_last(start_ms)), self._held(value))

    def get(self, key: Any, start_ms: int) -> Any:
        """The value put first at a start, or None."""
        return next((value for _, value in self.fetch(key, start_ms, start_ms)), None)
