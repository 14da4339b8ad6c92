"""The publication and the replication slot of a source: made if they are absent, and checked if they are there."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kstreams.connectors.postgres.catalog import Catalog, Table, literal, quoted
from kstreams.connectors.postgres.position import Position, lsn_of
from kstreams.errors import ConnectorError

if TYPE_CHECKING:
    from kstreams.connectors.postgres.server import Connection

logger = logging.getLogger("kstreams.connectors.postgres")

_SLOT_TIMEOUT_MS = 30_000
_SLOT = """
SELECT plugin, database = current_database(), coalesce(wal_status, ''), confirmed_flush_lsn::text
FROM pg_replication_slots WHERE slot_name = %s
"""
_PUBLISHED = """
SELECT c.oid::int8, to_jsonb(t)
FROM pg_publication_tables t
JOIN pg_namespace n ON n.nspname = t.schemaname
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
WHERE t.pubname = %s
"""
_PUBLICATION = """
SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate, puballtables, pubviaroot
FROM pg_publication WHERE pubname = %s
"""


@dataclass(frozen=True, slots=True)
class ReplicationObjects:
    """The names of a publication and of a slot, both of which belong to one source.

    Parameters
    ----------
    publication, slot : str
    """

    publication: str
    slot: str

    def ensure(self, connection: Connection, tables: Sequence[Table], position: Position | None) -> str:
        """Create what is absent, and return the log sequence number at which the slot begins.

        Parameters
        ----------
        connection : psycopg connection
        tables : sequence of Table
        position : Position or None
            The position of the source. None at its first start.

        Raises
        ------
        ConnectorError
            If something does not fit, or the slot no longer has the changes after the position.
        """
        catalog = Catalog(connection)
        _check_level(catalog)
        new_tables = [table for table in tables if position is None or not position.has_snapshot_of(table.identifier)]
        self._ensure_publication(catalog, connection, tables, new_tables)
        row = connection.execute(_SLOT, [self.slot]).fetchone()
        if row is None:
            return self._create_slot(catalog, position)
        plugin, is_here, wal_status, confirmed = row
        if plugin != "pgoutput" or not is_here:
            raise ConnectorError(
                f"The replication slot {self.slot!r} belongs to another database or has the plug-in {plugin!r} instead "
                "of pgoutput: give this source its own name, slot='...'"
            )
        if wal_status == "lost":
            raise ConnectorError(f"The server has removed WAL that the slot {self.slot!r} needs. {self._begin_again}")
        if position is not None and lsn_of(confirmed) > lsn_of(position.lsn):
            raise ConnectorError(
                f"The slot {self.slot!r} was confirmed up to {confirmed}, which is after the position {position.lsn} "
                f"of this source: another reader has used the slot. Give each application its own slot. "
                f"{self._begin_again}"
            )
        return str(confirmed)

    @property
    def drop(self) -> str:
        """The statements that remove both."""
        return (
            f"SELECT pg_drop_replication_slot({literal(self.slot)}); "
            f"DROP PUBLICATION IF EXISTS {quoted(self.publication)};"
        )

    @property
    def _begin_again(self) -> str:
        return f"To begin again with a snapshot, reset the application, and run what applies of: {self.drop}"

    def _create_slot(self, catalog: Catalog, position: Position | None) -> str:
        if position is not None:
            raise ConnectorError(
                f"The replication slot {self.slot!r} is gone, and with it the changes since {position.lsn}. "
                f"{self._begin_again}"
            )
        logger.info("PostgreSQL creates the replication slot %s as soon as all running transactions end", self.slot)
        catalog.scalar(f"SELECT set_config('statement_timeout', '{_SLOT_TIMEOUT_MS}', false)")
        lsn = catalog.scalar("SELECT lsn::text FROM pg_create_logical_replication_slot(%s, 'pgoutput')", [self.slot])
        catalog.scalar("SELECT set_config('statement_timeout', '0', false)")
        logger.info(
            "created the replication slot %s. The server keeps WAL until this source has read it. "
            "If the source is no longer needed, remove the slot and the publication: %s",
            self.slot,
            self.drop,
        )
        return str(lsn)

    def _ensure_publication(
        self, catalog: Catalog, connection: Connection, tables: Sequence[Table], new_tables: Sequence[Table]
    ) -> None:
        row = connection.execute(_PUBLICATION, [self.publication]).fetchone()
        if row is None:
            self._create_publication(catalog, connection, tables)
            return
        publishes_all, _, via_root = row
        published: dict[int, dict[str, object]] = dict(connection.execute(_PUBLISHED, [self.publication]).fetchall())
        absent = [table for table in tables if table.identifier not in published]
        if not publishes_all or (any(table.is_partitioned for table in tables) and not via_root):
            raise ConnectorError(
                f"The publication {self.publication!r} does not publish all operations, or not through the root of a "
                "partitioned table: create it WITH (publish_via_partition_root = true), or let the source create it"
            )
        self._check_rows(published, tables)
        for table in absent:
            if table not in new_tables:
                raise ConnectorError(
                    f"The table {table.full_name} is no longer in the publication {self.publication!r}, or was created "
                    f"anew: changes may be lost. {self._begin_again}"
                )
            only = table.sql_without_descendants
            self._execute(connection, f"ALTER PUBLICATION {quoted(self.publication)} ADD TABLE {only}")
            logger.info("added the table %s to the publication %s", table.full_name, self.publication)

    def _create_publication(self, catalog: Catalog, connection: Connection, tables: Sequence[Table]) -> None:
        if connection.execute(_SLOT, [self.slot]).fetchone() is not None:
            # a slot can only be read if its publication is older
            raise ConnectorError(
                f"There is a replication slot {self.slot!r}, but its publication {self.publication!r} is gone: drop "
                f"the slot, or give this source another one, slot='...'. {self.drop}"
            )
        names = ", ".join(table.sql_without_descendants for table in tables)
        options = "WITH (publish_via_partition_root = true)"
        self._execute(connection, f"CREATE PUBLICATION {quoted(self.publication)} FOR TABLE {names} {options}")
        logger.info("created the publication %s for %s. To remove it: %s", self.publication, names, self.drop)

    def _execute(self, connection: Connection, statement: str) -> None:
        import psycopg

        try:
            connection.execute(statement)
        except psycopg.errors.InsufficientPrivilege as error:
            raise ConnectorError(
                f"This role may not change publications ({error}). Let the owner of the tables run: {statement};"
            ) from error

    def _check_rows(self, published: dict[int, dict[str, object]], tables: Sequence[Table]) -> None:
        for table in tables:
            row_filter = published.get(table.identifier, {}).get("rowfilter")
            if row_filter is not None:
                raise ConnectorError(
                    f"The publication {self.publication!r} has a row filter for {table.full_name}: {row_filter}. A "
                    "snapshot would not have it: publish all rows, and filter in the topology"
                )


def _check_level(catalog: Catalog) -> None:
    level = catalog.scalar("SHOW wal_level")
    if level != "logical":
        raise ConnectorError(
            f"The server has wal_level = {level}, which change data capture cannot read: ALTER SYSTEM SET wal_level = "
            "'logical', and restart the server"
        )
