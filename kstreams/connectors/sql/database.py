"""`Database`: the address of a database, its SQLAlchemy dialect, and the meaning of the errors of its driver."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kstreams.connectors.postgres.errors import may_pass, remedy
from kstreams.errors import ConnectorError, ConnectorUnavailableError

if TYPE_CHECKING:
    import sqlalchemy as sa

_EXTRA = "sqldb"
_DRIVERS = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}
_PASSWORD = re.compile(r"(?<=:)[^:@/]*(?=@)|(?<=password=)[^&]*", re.IGNORECASE)
_SQLITE_OUTAGES = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_FULL", "SQLITE_PROTOCOL")
_REFUSING_STATES = ("44", "P0")
"""Classes of SQLSTATE by which Postgres refuses a row beside its data errors: checks of views, and triggers."""


def masked_url(url: str) -> str:
    """Return an address without its password.

    Examples
    --------
    >>> masked_url("postgresql://ada:secret@db.example/shop")
    'postgresql://ada:***@db.example/shop'
    """
    scheme, separator, place = url.partition("://")
    return scheme + separator + _PASSWORD.sub("***", place)


@dataclass(frozen=True, repr=False)
class Database:
    """The address of a database.

    Parameters
    ----------
    url : str
        As SQLAlchemy takes it, such as `postgresql://user:password@host/database` or `sqlite:///shop.db`. DuckDB, for
        which SQLAlchemy has no dialect of its own, is `duckdb:///shop.duckdb`.
    """

    url: str

    def __post_init__(self) -> None:
        if "://" not in self.url:
            raise ConnectorError(
                f"{masked_url(self.url)!r} is no address of a database: write it as "
                "postgresql://user:password@host/name, sqlite:///file.db or duckdb:///file.duckdb"
            )

    def __repr__(self) -> str:
        return masked_url(self.url)

    @property
    def system(self) -> str:
        """The name of the database system, such as `postgresql`."""
        scheme = self.url.partition("://")[0].partition("+")[0]
        return "postgresql" if scheme == "postgres" else scheme

    @property
    def path(self) -> str:
        """The file of a database in a file."""
        return self.url.partition("://")[2].removeprefix("/")

    @property
    def sqlalchemy_url(self) -> str:
        """The address with the driver that kstreams uses, if it names none."""
        scheme, _, place = self.url.partition("://")
        return f"{_DRIVERS.get(scheme, scheme)}://{place}"

    def dialect(self) -> sa.Dialect:
        """Return the SQLAlchemy dialect in which statements are written. DuckDB understands the one of Postgres.

        Raises
        ------
        ConnectorError
            If SQLAlchemy, the dialect or the driver is not installed.
        """
        with self.needs_packages():
            import sqlalchemy as sa
            from sqlalchemy.dialects import postgresql

            if self.system == "duckdb":
                dialect = postgresql.dialect(paramstyle="qmark")  # type: ignore[no-untyped-call]
                dialect.name = "duckdb"
                return dialect
            try:
                return sa.create_engine(self.sqlalchemy_url).dialect
            except sa.exc.ArgumentError as error:
                raise ConnectorError(f"{self}: {self.without_password(error)}. Check the address") from None

    @contextmanager
    def needs_packages(self) -> Iterator[None]:
        """Raise ConnectorError if a package that is imported within is not installed."""
        try:
            yield
        except ImportError as error:
            raise ConnectorError(
                f"{self} needs {error.name}, which is not installed: pip install 'kstreams-dsl[{_EXTRA}]', and the "
                "driver of the database if it is neither Postgres nor SQLite"
            ) from error

    @contextmanager
    def answers(self, doing: str) -> Iterator[None]:
        """Raise ConnectorUnavailableError if the database does not answer within, or ConnectorError if it refuses.

        Parameters
        ----------
        doing : str
            What is done within, for the message: "cannot <doing>".
        """
        try:
            yield
        except (ConnectorError, KeyboardInterrupt):
            raise
        except Exception as error:
            cause = driver_error(error)
            message = f"{self}: cannot {doing}: {self.without_password(cause)}"
            if is_outage(cause):
                raise ConnectorUnavailableError(f"{message}. It is tried again") from error
            if not is_database_error(cause):
                raise
            raise ConnectorError(f"{message}. {remedy(cause)}") from error

    def without_password(self, error: BaseException) -> str:
        """Return the text of an error on one line, without the password of the address."""
        text = " ".join(str(error).split())
        for secret in _PASSWORD.findall(self.url.partition("://")[2]):
            text = text.replace(secret, "***") if secret else text
        return text


def driver_error(error: Exception) -> BaseException:
    """Return the error of the driver that SQLAlchemy has wrapped, or the error itself."""
    return getattr(error, "orig", None) or error


def is_outage(error: BaseException) -> bool:
    """Return whether an error of a driver says that the database does not answer now, so that waiting helps."""
    sqlite_error = getattr(error, "sqlite_errorname", None)
    if sqlite_error is not None:
        return str(sqlite_error).startswith(_SQLITE_OUTAGES)
    return may_pass(error)


def is_refusal(error: BaseException) -> bool:
    """Return whether an error of a driver says that the database refuses a row, as a type or a constraint may."""
    sqlstate = str(getattr(error, "sqlstate", None) or "")
    refusals = {"DataError", "IntegrityError", "OverflowError"}
    return sqlstate[:2] in _REFUSING_STATES or not _dbapi_classes(error).isdisjoint(refusals)


def is_database_error(error: BaseException) -> bool:
    """Return whether an error comes from a driver or from SQLAlchemy."""
    return not _dbapi_classes(error).isdisjoint({"DatabaseError", "InterfaceError", "SQLAlchemyError"})


def _dbapi_classes(error: BaseException) -> set[str]:
    """Return the names of an error's classes: those of the Python database API are the same in every driver."""
    return {cls.__name__ for cls in type(error).__mro__}
