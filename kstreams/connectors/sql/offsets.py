"""`TargetOffsets`: the table in which a database keeps the next offset of each task, beside the rows of the tasks.

Each writer of a task has an epoch. A commit names the epoch of its writer in its condition, so that a writer with an
older epoch changes nothing. Kafka fences producers by epochs in the same manner.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from kstreams.connectors.sql.connections import Connection
from kstreams.errors import FencedError


@dataclass(frozen=True)
class Claim:
    """The right of a writer to commit: its epoch, and the offset at which it begins."""

    task: str
    epoch: int
    next_offset: int | None


class TargetOffsets:
    """The table of offsets.

    Parameters
    ----------
    name : str
    schema : str or None
    """

    def __init__(self, name: str, schema: str | None) -> None:
        self.table = sa.Table(
            sa.quoted_name(name, True),
            sa.MetaData(schema=None if schema is None else sa.quoted_name(schema, True)),
            sa.Column("task", sa.String(512), primary_key=True),
            sa.Column("epoch", sa.BigInteger, nullable=False),
            sa.Column("next_offset", sa.BigInteger),
        )

    def create(self, connection: Connection) -> None:
        """Create the table, unless it exists. Another process may create it at the same time."""
        if self._exists(connection):
            return
        try:
            connection.execute(sa.schema.CreateTable(self.table))
            connection.commit()
        except Exception:
            connection.rollback()
            if not self._exists(connection):
                raise

    def _exists(self, connection: Connection) -> bool:
        exists = bool(connection.columns(self.table.name, self.table.schema))
        connection.commit()
        return exists

    def claim(self, connection: Connection, task: str) -> Claim:
        """Begin the next epoch of a task. From now on, writers with older epochs cannot commit."""
        is_task = self.table.c.task == task
        following = sa.update(self.table).where(is_task).values(epoch=self.table.c.epoch + 1)
        if connection.execute(following).rowcount == 0:
            first = sa.insert(self.table).values(task=task, epoch=0, next_offset=None)
            connection.attempt(lambda: _run(connection, first))
            connection.execute(following)
        query = sa.select(self.table.c.epoch, self.table.c.next_offset).where(is_task)
        [(epoch, next_offset)] = connection.execute(query).rows
        connection.commit()
        return Claim(task, epoch, next_offset)

    def advance(self, connection: Connection, claim: Claim, next_offset: int) -> None:
        """Note the next offset within the transaction of the rows.

        Raises
        ------
        FencedError
            If a later epoch has begun.
        """
        condition = sa.and_(self.table.c.task == claim.task, self.table.c.epoch == claim.epoch)
        update = sa.update(self.table).where(condition).values(next_offset=next_offset)
        if connection.execute(update).rowcount == 0:
            connection.rollback()
            raise fenced(claim)

    def is_current(self, connection: Connection, claim: Claim) -> bool:
        """Return whether no later epoch of the task has begun."""
        query = sa.select(self.table.c.epoch).where(self.table.c.task == claim.task)
        epochs = connection.execute(query).rows
        connection.commit()
        return [tuple(row) for row in epochs] == [(claim.epoch,)]


def fenced(claim: Claim) -> FencedError:
    """Return the error of a writer whose epoch has ended."""
    return FencedError(
        f"the sink's task {claim.task} has been opened again elsewhere (after epoch {claim.epoch}): nothing was "
        "committed here, and the other writer goes on. If two applications share a name, rename one of them"
    )


def _run(connection: Connection, statement: sa.Executable) -> None:
    connection.execute(statement)
