"""`RowChange`: one change of a row in a database, as change data capture reports it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")

Operation: TypeAlias = Literal["create", "update", "delete", "read", "truncate"]
"""What happened to a row: `read` is a row of a snapshot, `truncate` deletes all rows of the table."""


class ChangeSource(msgspec.Struct, frozen=True, kw_only=True, rename={"tx_id": "txId"}):
    """Where and when the database made a change. Debezium: the block `source`.

    Parameters
    ----------
    connector, name : str
        The kind of the connector (`postgresql`), and the prefix of its topics.
    db, schema, table : str or None
    ts_ms : int
        When the database made the change (ms since 1970). For a snapshot, when it was taken.
    snapshot : str or None
        None or `false` for a change. Otherwise a place in a snapshot: `first`, `true`, `last`, `incremental`.
    tx_id : int or None
        The transaction.
    lsn : int or None
        The position in the write-ahead log of PostgreSQL.
    sequence : str or None
        The position of the last commit and of the change, as JSON.
    version : str
        The version of the connector.
    """

    connector: str = ""
    name: str = ""
    db: str | None = None
    schema: str | None = None
    table: str | None = None
    ts_ms: int = 0
    snapshot: str | None = None
    tx_id: int | None = None
    lsn: int | None = None
    sequence: str | None = None
    version: str = ""


class ChangeTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a change in its transaction. Debezium: the block `transaction` (`provide.transaction.metadata`).

    Parameters
    ----------
    id : str
    total_order : int
        The number of the change among all changes of the transaction, from 1.
    data_collection_order : int
        The number of the change among those of its table.
    """

    id: str
    total_order: int
    data_collection_order: int


class RowChange(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One change of a row. `ks.Debezium` reads Debezium's events as such changes.

    Parameters
    ----------
    operation : {"create", "update", "delete", "read", "truncate"}
    before, after
        The row before and after the change. By default, PostgreSQL reports only the key before a change, and no
        other column (`REPLICA IDENTITY DEFAULT`).
    source : ChangeSource
    transaction : ChangeTransaction or None
    ts_ms : int
        When the connector processed the change (ms since 1970).
    unavailable : tuple of str
        The columns of `after` that the change does not report, as they are large and were not changed (TOAST). They
        are None in `after`. A table retains their values.

    Examples
    --------
    >>> RowChange(operation="create", after={"id": 1}).after
    {'id': 1}
    """

    operation: Operation
    before: T | None = None
    after: T | None = None
    source: ChangeSource = ChangeSource()
    transaction: ChangeTransaction | None = None
    ts_ms: int = 0
    unavailable: tuple[str, ...] = ()
