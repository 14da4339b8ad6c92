"""How long the segments are in which Kafka Streams over RocksDB drops what has expired: `all()` shows it until then."""

from __future__ import annotations

from kstreams.state.api import StoreBuilder

_SHORTEST_MS = 60_000


def segment_ms(builder: StoreBuilder) -> int | None:
    """Length of a store's segments in milliseconds; None for a store in memory, which drops each row by itself.

    In memory too, what is emitted on close must still be there when it closes.

    Examples
    --------
    >>> from kstreams.state import Stores
    >>> segment_ms(Stores.session("visits", 3_600_000, key=str, value=int))
    1800000
    """
    if (builder.store == "memory" and not builder.time_ordered) or builder.retention_ms is None:
        return None
    return max(builder.retention_ms // 2, _SHORTEST_MS)
