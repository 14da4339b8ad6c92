"""`GuardedTable`: an Iceberg table whose commits are tried again only while a condition holds.

pyiceberg renews the metadata of a table before it tries a commit again, and the commit demands that the table is still
the one of these metadata. So a condition that is checked at each renewal holds when the commit succeeds.
"""

from __future__ import annotations

from collections.abc import Callable

from pyiceberg.table import Table


class GuardedTable(Table):  # type: ignore[misc]  # the types of pyiceberg are not followed
    """A table with a condition.

    Parameters
    ----------
    table : Table
    demand : callable
        Raises an error if the table of new metadata is not as expected.
    """

    def __init__(self, table: Table, demand: Callable[[Table], None]) -> None:
        super().__init__(table.name(), table.metadata, table.metadata_location, table.io, table.catalog, table.config)
        self._demand = demand

    def refresh(self) -> Table:
        """Read the newest metadata, and check the condition."""
        super().refresh()
        self._demand(self)
        return self
