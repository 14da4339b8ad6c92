"""`Position`: where a source of PostgreSQL continues, in the stream of changes and in the snapshot before it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import msgspec

from kstreams.kernel.decoders import convert


def lsn_text(lsn: int) -> str:
    """Return a log sequence number as PostgreSQL writes it.

    Examples
    --------
    >>> lsn_text(0x1_0152_95C0)
    '1/15295C0'
    """
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_of(text: str) -> int:
    """Return the number of a log sequence number.

    Examples
    --------
    >>> lsn_of("1/15295C0") == 0x1_0152_95C0
    True
    """
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


@dataclass(frozen=True)
class DatabaseSnapshot:
    """Which transactions a snapshot of the database includes.

    Parameters
    ----------
    transactions : str
        The result of `pg_current_snapshot()`: the first running transaction, the first future one, and all running.
    lsn : str
        A log sequence number after the commits of all included transactions.
    """

    transactions: str
    lsn: str

    def includes(self, transaction: int) -> bool:
        """Return whether a transaction is included. `transaction` has 32 bits, as in the replication protocol.

        Examples
        --------
        >>> snapshot = DatabaseSnapshot("720:725:720,722", "0/1")
        >>> [number for number in range(718, 728) if snapshot.includes(number)]
        [718, 719, 721, 723, 724]
        >>> DatabaseSnapshot("4294967300:4294967301:4294967300", "0/1").includes(4294967290)
        True
        """
        first_running, first_future, running = self._numbers
        number = first_future + ((transaction - first_future + 2**31) & 0xFFFFFFFF) - 2**31  # the nearest with 64 bits
        return number < first_running or (number < first_future and number not in running)

    @cached_property
    def _numbers(self) -> tuple[int, int, frozenset[int]]:
        first_running, first_future, running = self.transactions.split(":")
        return int(first_running), int(first_future), frozenset(map(int, filter(None, running.split(","))))


@dataclass(frozen=True)
class SnapshotRange:
    """Consecutive rows of a table that were read in one snapshot of the database, in the order of the key.

    Parameters
    ----------
    table : str
    snapshot : DatabaseSnapshot
    last_key : list of str, or None
        The key of the last row. None for the end of the table.
    """

    table: str
    snapshot: DatabaseSnapshot
    last_key: list[str] | None = None


@dataclass(frozen=True)
class Position:
    """What of a database is in the topic.

    Parameters
    ----------
    system : str
        The identifier of the server's data, which a restored or another server does not have.
    lsn : str
        All transactions whose commit records lie before this log sequence number are in the topic.
    transaction : str
        The log sequence number of the commit of the transaction that is in the topic in part. "0/0" for none.
    changes : int
        The number of changes of this transaction that are in the topic.
    tables : dict of str to int
        The object identifiers of the tables whose snapshots are complete.
    ranges : list of SnapshotRange
        What was read of snapshots whose transactions the stream of changes may still contain.
    """

    system: str
    lsn: str
    transaction: str = "0/0"
    changes: int = 0
    tables: dict[str, int] = field(default_factory=dict)
    ranges: list[SnapshotRange] = field(default_factory=list)

    @classmethod
    def of_json(cls, value: object) -> Position:
        """Return the position that `to_json` has returned."""
        return convert(value, cls)

    def to_json(self) -> dict[str, Any]:
        """Return the position as a value that JSON can hold."""
        builtins: dict[str, Any] = msgspec.to_builtins(self)
        return builtins

    def has_snapshot_of(self, identifier: int) -> bool:
        """Return whether the snapshot of a table is complete. A renamed table has the same identifier."""
        return identifier in self.tables.values()

    def ranges_of(self, table: str) -> list[SnapshotRange]:
        """Return the ranges of a table, in the order of its keys."""
        return [part for part in self.ranges if part.table == table]

    def with_rows(self, table: str, snapshot: DatabaseSnapshot, last_key: list[str] | None) -> Position:
        """Return the position after further rows of a table, which end with `last_key`, or with the table."""
        ranges = list(self.ranges)
        if ranges and ranges[-1].table == table and ranges[-1].snapshot == snapshot:
            ranges.pop()
        return replace(self, ranges=[*ranges, SnapshotRange(table, snapshot, last_key)])

    def with_table(self, table: str, identifier: int) -> Position:
        """Return the position after the snapshot of a table."""
        return replace(self, tables={**self.tables, table: identifier})

    def at(self, lsn: int) -> Position:
        """Return the position at a later place between transactions. Snapshots that it has passed are forgotten."""
        is_passed = all(lsn_of(part.snapshot.lsn) <= lsn for part in self.ranges)
        moved = replace(self, lsn=lsn_text(lsn), ranges=[] if is_passed else self.ranges)
        is_inside = lsn_of(self.transaction) >= lsn  # of a transaction that the stream has not reached again
        return moved if is_inside else replace(moved, transaction="0/0", changes=0)

    def inside_transaction(self, commit_lsn: int, changes: int) -> Position:
        """Return the position after some changes of a transaction."""
        return replace(self, transaction=lsn_text(commit_lsn), changes=changes)
