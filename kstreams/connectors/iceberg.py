"""`IcebergSink`: rows of an Iceberg table, without a JVM. A commit sets the offset of its task as a table property.

The property and the snapshot are one change of the table's metadata, which the catalogue replaces by compare-and-set.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from kstreams.connectors.api import Sink, SinkTask
from kstreams.connectors.fitted_rows import last_of_each_key, new_columns, table_schema
from kstreams.connectors.gathered_rows import DELETED, GatheredRows, table_mode
from kstreams.connectors.object_stores import remedy
from kstreams.connectors.postgres.errors import remedy as remedy_of_database
from kstreams.connectors.rows import RowColumns, names_of
from kstreams.connectors.table_writer import ATTEMPTS, LakehouseTableWriter, lock_of, reason_of, undeclared_columns
from kstreams.errors import ConnectorError, ConnectorUnavailableError
from kstreams.kernel.durations import Duration, to_ms

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as IcebergCatalog
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table

Catalog: TypeAlias = "str | Mapping[str, str]"
"""The name of a catalogue in the configuration of pyiceberg, or its properties."""

_TRANSFORM = re.compile(r"(?:(?P<transform>year|month|day|hour|bucket|truncate)\()?(?P<words>[^()]+)\)?")


class IcebergSink(Sink):
    """An Iceberg table. `ks.sinks.iceberg` describes the parameters."""

    def __init__(
        self,
        catalog: Catalog,
        table: str,
        *,
        mode: str = "append",
        key: str | Sequence[str] | None = None,
        partition_by: str | Sequence[str] | None = None,
        timestamp: str | None = None,
        evolve: bool = False,
        properties: Mapping[str, str] | None = None,
        commit_interval: Duration = timedelta(seconds=10),
        commit_rows: int = 500_000,
    ) -> None:
        _require_pyiceberg()
        self.name = table
        self.mode = table_mode(mode, names_of(key), repr(self))
        self.columns = RowColumns(key=self.mode.key, timestamp=timestamp, derived={})
        self.evolve = evolve
        self.partition_by = _partition_fields(names_of(partition_by))
        self.properties = dict(properties or {})
        self.commit_interval_ms = to_ms(commit_interval)
        self.commit_rows = commit_rows
        self._catalog = catalog

    def __repr__(self) -> str:
        return f"iceberg({self.name!r})"

    def open(self, task: SinkTask) -> IcebergSinkWriter:
        return IcebergSinkWriter(self, task)

    def catalog(self) -> IcebergCatalog:
        """Return the catalogue."""
        from pyiceberg.catalog import load_catalog

        with lock_of("catalogue"), self.answers():  # two threads cannot create the tables of a new catalogue
            if isinstance(self._catalog, str):
                return load_catalog(self._catalog)
            properties = dict(self._catalog)
            return load_catalog(properties.pop("name", "default"), **properties)

    def table(self, catalog: IcebergCatalog) -> Table | None:
        """Return the table at its newest snapshot; None if there is none."""
        from pyiceberg.exceptions import NoSuchTableError

        with self.answers():
            try:
                return catalog.load_table(self.name)
            except NoSuchTableError:
                return None

    def created_table(self, catalog: IcebergCatalog, rows: pa.Schema) -> Table:
        """Create the table for rows, unless another task creates it at the same time."""
        from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError

        with lock_of(self.name), self.answers():
            namespace = self.name.rpartition(".")[0]
            if namespace:
                catalog.create_namespace_if_not_exists(namespace)
            with suppress(TableAlreadyExistsError, CommitFailedException):  # another task was faster
                self._create(catalog, table_schema(rows))
            return catalog.load_table(self.name)

    def _create(self, catalog: IcebergCatalog, schema: pa.Schema) -> None:
        from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException

        try:
            transaction = catalog.create_table_transaction(self.name, schema, properties=self.properties)
            with transaction, transaction.update_spec() as spec:
                for column, transform in self.partition_by.items():
                    spec.add_field(column, transform)
        except (UnsupportedPyArrowTypeException, TypeError, ValueError) as error:
            raise ConnectorError(
                f"The Iceberg table {self.name} cannot have the columns {', '.join(schema.names)}: {reason_of(error)}. "
                "Convert fields of such types before the sink."
            ) from error

    @contextmanager
    def answers(self) -> Iterator[None]:
        """Convert errors of the catalogue and of the file system, except for conflicts of commits."""
        from pyiceberg.exceptions import ForbiddenError, NoSuchNamespaceError, RESTError, UnauthorizedError
        from sqlalchemy.exc import SQLAlchemyError

        from kstreams.connectors.sql.database import driver_error, is_outage

        try:
            yield
        except (ForbiddenError, UnauthorizedError, NoSuchNamespaceError) as error:
            raise ConnectorError(f"The catalogue refuses {self.name}: {reason_of(error)}") from error
        except SQLAlchemyError as error:
            cause = driver_error(error)
            message = f"The catalogue of {self.name} fails: {reason_of(cause)}"
            if is_outage(cause):
                raise ConnectorUnavailableError(message) from error
            raise ConnectorError(f"{message}. {remedy_of_database(cause)}.") from error
        except (OSError, RESTError) as error:
            if remedy(error):
                raise ConnectorError(
                    f"The Iceberg table {self.name} is refused: {reason_of(error)}. {remedy(error)}."
                ) from error
            raise ConnectorUnavailableError(f"The Iceberg table {self.name} fails: {reason_of(error)}") from error


class IcebergSinkWriter(LakehouseTableWriter["Table"]):
    """Writes one topic partition to an Iceberg table."""

    def __init__(self, sink: IcebergSink, task: SinkTask) -> None:
        self._sink = sink
        self._property = f"kstreams.offset.{task.id}"
        self._catalog = sink.catalog()
        super().__init__(task, sink.name, GatheredRows(sink.columns, sink.mode), sink.table(self._catalog))

    def close(self) -> None:
        super().close()
        self._catalog.close()

    def _create(self, rows: pa.Schema) -> Table:
        return self._sink.created_table(self._catalog, rows)

    def _schema(self, table: Table) -> pa.Schema:
        schema: pa.Schema = table.schema().as_arrow()
        return schema

    def _offset_in(self, table: Table) -> int | None:
        text = table.properties.get(self._property)
        return None if text is None else int(text)

    def _attempt(self, table: Table, next_offset: int) -> None:
        """Commit as the base class says. The tasks of a process take turns."""
        from pyiceberg.exceptions import CommitFailedException, ValidationException

        for attempt in range(ATTEMPTS):
            try:
                with lock_of(self._sink.name), self._sink.answers():
                    self._refresh(table)
                    self._table = self._write(table, self._rows_for(table), next_offset)
                return
            except (CommitFailedException, ValidationException):
                time.sleep(self._pause_s(attempt))
        raise ConnectorUnavailableError(f"{self._sink.name}: other commits came first {ATTEMPTS} times.")

    def _write(self, table: Table, rows: pa.Table, next_offset: int) -> Table:
        """Commit rows and offset as one change of the metadata."""
        from kstreams.connectors.guarded_iceberg_table import GuardedTable

        offset = {self._property: str(next_offset)}
        schema = self._schema(table)
        with GuardedTable(table, self._require_own_offset).transaction() as transaction:
            transaction.set_properties(offset)
            if self._sink.mode.upserts and len(rows):
                self._upsert(transaction, last_of_each_key(rows, self._sink.mode.key), schema, offset)
            else:
                transaction.append(_with_schema(rows, schema), snapshot_properties=offset)
        return self._sink.table(self._catalog) or table

    def _upsert(self, transaction: Any, rows: pa.Table, schema: pa.Schema, offset: Mapping[str, str]) -> None:
        """Delete the rows of all keys, and add those with values."""
        present = _with_schema(rows.filter(pc.invert(rows.column(DELETED))), schema)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Delete operation did not match any records")
            transaction.overwrite(
                present, overwrite_filter=_has_key_of(rows, self._sink.mode.key), snapshot_properties=offset
            )

    def _add_columns(self, table: Table, rows: pa.Schema) -> None:
        from pyiceberg.exceptions import CommitFailedException

        while added := new_columns(rows, self._schema(table)).names:
            if not self._sink.evolve:
                raise undeclared_columns("Iceberg", self._place, added)
            try:
                with self._sink.answers(), table.update_schema() as update:
                    update.union_by_name(new_columns(rows, self._schema(table)))
            except CommitFailedException:  # another task has changed the table
                self._refresh(table)

    def _refresh(self, table: Table) -> None:
        with self._sink.answers():
            table.refresh()
        self._require_own_offset(table)


def _require_pyiceberg() -> None:
    try:
        import pyiceberg.catalog  # noqa: F401
        import sqlalchemy  # noqa: F401
    except ImportError as error:
        message = "Iceberg tables need the package pyiceberg: pip install 'kstreams-dsl[iceberg]'"
        raise ConnectorError(message) from error


def _with_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the columns of a table, and with its statement which of them admit no null."""
    return pa.Table.from_arrays(rows.select(schema.names).columns, schema=schema)


def _has_key_of(rows: pa.Table, key: Sequence[str]) -> BooleanExpression:
    """Return the filter for the rows of a table that have the key of one of these rows.

    Of several key columns, the one with the most values is listed for each combination of the others.

    Examples
    --------
    >>> print(_has_key_of(pa.table({"city": ["Rome", "Rome"], "hour": [7, 8]}), ["city", "hour"]).left)
    In(Reference(name='hour'), {7, 8})
    """
    from pyiceberg.expressions import And, EqualTo, In, Or

    listed = max(key, key=lambda name: len(rows.column(name).unique()))
    others = [name for name in key if name != listed]
    if not others:
        return In(listed, rows.column(listed).to_pylist())
    filters: list[BooleanExpression] = []
    for group in rows.group_by(others).aggregate([(listed, "list")]).to_pylist():
        values = In(listed, group.pop(f"{listed}_list"))
        filters.append(And(values, *(EqualTo(name, value) for name, value in group.items())))
    return Or(*filters) if len(filters) > 1 else filters[0]


def _partition_fields(texts: Sequence[str]) -> dict[str, str]:
    """Return the transform of each partition column."""
    fields = dict(map(_partition_field, texts))
    if len(fields) < len(texts):
        raise ConnectorError(
            f"{', '.join(texts)} name a column twice: pyiceberg writes one partition field per column."
        )
    return fields


def _partition_field(text: str) -> tuple[str, str]:
    """Return the column and the transform of a partition field.

    Examples
    --------
    >>> _partition_field("country"), _partition_field("day(at)"), _partition_field("bucket(16, id)")
    (('country', 'identity'), ('at', 'day'), ('id', 'bucket[16]'))
    """
    match = _TRANSFORM.fullmatch(text.strip())
    words = [] if match is None else [word.strip() for word in match["words"].split(",")]
    has_width = match is not None and match["transform"] in ("bucket", "truncate")
    if match is None or len(words) != 1 + has_width or text.count("(") != text.count(")"):
        raise ConnectorError(
            f"{text!r} is no partition field: write 'column', 'day(column)' (or year, month, hour), "
            "'bucket(16, column)' or 'truncate(4, column)'."
        )
    transform = match["transform"] or "identity"
    return words[-1], f"{transform}[{words[0]}]" if has_width else transform
