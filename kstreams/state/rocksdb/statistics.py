"""What RocksDB tells of itself: properties of a column family, and the statistics of a database."""

from __future__ import annotations

import re

from kstreams.state.column_family import Statistic

PROPERTIES = (
    *("num-immutable-mem-table", "cur-size-active-mem-table", "cur-size-all-mem-tables", "size-all-mem-tables"),
    *("num-entries-active-mem-table", "num-entries-imm-mem-tables", "num-deletes-active-mem-table"),
    *("num-deletes-imm-mem-tables", "mem-table-flush-pending", "num-running-flushes", "compaction-pending"),
    *("num-running-compactions", "estimate-pending-compaction-bytes", "total-sst-files-size", "live-sst-files-size"),
    *("num-live-versions", "block-cache-capacity", "block-cache-usage", "block-cache-pinned-usage"),
    *("estimate-num-keys", "estimate-table-readers-mem", "background-errors"),
)
"""Without their prefix, as Kafka Streams reads them."""

_LINE = re.compile(r"rocksdb\.(\S+) (?:.*P100 : (\S+) )?COUNT : (\d+)(?: SUM : (\d+))?")


def parsed(text: str) -> dict[str, Statistic]:
    """The statistics in RocksDB's own text, by their names without the prefix.

    Examples
    --------
    >>> text = 'rocksdb.bytes.written COUNT : 70\\nrocksdb.db.flush.micros P50 : 1.0 P100 : 9.0 COUNT : 2 SUM : 12'
    >>> found = parsed(text)
    >>> found["bytes.written"], found["db.flush.micros"]
    (Statistic(times=70, total=0, highest=0.0), Statistic(times=2, total=12, highest=9.0))
    """
    return {
        name: Statistic(int(count), int(total or 0), float(highest or 0))
        for name, highest, count, total in _LINE.findall(text)
    }
