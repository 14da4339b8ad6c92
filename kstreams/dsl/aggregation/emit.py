"""`EmitStrategy`: when the results of windows are emitted."""

from __future__ import annotations

from enum import Enum


class EmitStrategy(Enum):
    """When a windowed aggregation emits. Kafka Streams: `EmitStrategy.onWindowUpdate()`, `onWindowClose()`."""

    ON_WINDOW_UPDATE = "on_window_update"
    """Every update, or with the record cache the last one of each commit."""

    ON_WINDOW_CLOSE = "on_window_close"
    """Once, when stream time has passed the end of the window and its grace."""
