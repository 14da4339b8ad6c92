"""`MemoryShares`: how `memory.max.bytes` is divided among the parts of a process."""

from __future__ import annotations

from dataclasses import dataclass

from kstreams.config.config import Config


@dataclass(frozen=True, slots=True)
class MemoryShares:
    """What each part may take, in bytes. All threads and tasks of the process share it.

    Live values get a third of the whole, and each other part a twelfth. A third is left for what is not counted: dicts
    that grow, gaps between objects, a batch at work, RocksDB's compactions.

    Parameters
    ----------
    live : int
        Live values of stores, and what waits in the buffers of suppress and joins.
    uncommitted : int
        What has changed since the last commit, updates in the record cache among it; while stores are restored, rows on
        their way into them.
    block_cache, write_buffers : int
        RocksDB's.
    buffered : int
        Input that waits and output that is not sent.

    Examples
    --------
    >>> MemoryShares.of(Config.of({"memory.max.bytes": 60_000})).live
    20000
    >>> MemoryShares.of(Config.of({"memory.max.bytes": 60_000, "statestore.live.max.bytes": 5_000})).live
    5000
    """

    live: int
    uncommitted: int
    block_cache: int
    write_buffers: int
    buffered: int

    @classmethod
    def of(cls, config: Config) -> MemoryShares:
        """The shares in a configuration. A part that has a key of its own takes no more than that says.

        Unless the whole is set, it grows with its parts: a larger part needs no other setting.
        """
        live = config["statestore.live.max.bytes"]
        uncommitted = config["statestore.uncommitted.max.bytes"]
        total: int = config["memory.max.bytes"]
        if "memory.max.bytes" not in config.explicit:
            total = max(total, 3 * (live or 0), 12 * (uncommitted or 0))
        twelfth = total // 12
        return cls(
            live=_capped(4 * twelfth, live),
            uncommitted=_capped(twelfth, uncommitted),
            block_cache=twelfth,
            write_buffers=twelfth,
            buffered=twelfth,
        )


def _capped(share: int, cap: int | None) -> int:
    return share if cap is None else min(share, cap)
