"""`Server`: connections to PostgreSQL, and its errors as errors of connectors."""

from __future__ import annotations

import re
import select
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from kstreams.config import without_passwords
from kstreams.connectors.postgres.errors import may_pass, remedy
from kstreams.errors import ConnectorError, ConnectorUnavailableError

if TYPE_CHECKING:
    import psycopg
    from psycopg.pq.abc import PGconn
    from psycopg.rows import TupleRow

    Connection: TypeAlias = psycopg.Connection[TupleRow]

CONNECT_TIMEOUT_S = 10
_TEXT_FORMATS = {
    "datestyle": "ISO",
    "timezone": "UTC",
    "intervalstyle": "iso_8601",
    "bytea_output": "hex",
    "extra_float_digits": "3",
    "row_security": "off",
}
"""The settings of a session on which the text of values depends. Rows that a policy hides are an error."""

_DRIVER = re.compile(r"^(postgres(?:ql)?)\+\w+://")
_PASSWORD_OF_DSN = re.compile(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)", re.IGNORECASE)
_QUERY_PASSWORD = re.compile(r"([?&]password=)[^&\s]+", re.IGNORECASE)


def masked_url(url: str) -> str:
    """Return an address of a database without its user and password.

    Examples
    --------
    >>> masked_url("postgresql://me:tiger@localhost/shop"), masked_url("host=localhost password=tiger")
    ('postgresql://****@localhost/shop', 'host=localhost password=****')
    """
    text = without_passwords(url) if "://" in url else url
    return _QUERY_PASSWORD.sub(r"\1****", _PASSWORD_OF_DSN.sub(r"\1****", text))


@dataclass(frozen=True, slots=True)
class Server:
    """A database of a PostgreSQL server.

    Parameters
    ----------
    url : str
        `postgresql://user:password@host:port/database`, also as SQLAlchemy writes it, or the `key=value` form of libpq.
    """

    url: str

    def __repr__(self) -> str:
        return masked_url(self.url)

    def connect(self) -> Connection:
        """Open a connection for queries. Each statement is a transaction unless one is begun."""
        import_psycopg()
        import psycopg

        with self.errors():
            return psycopg.connect(self._parameters(), autocommit=True)

    def connect_for_replication(self) -> PGconn:
        """Open a connection that takes replication commands. psycopg's cursors cannot read what it sends."""
        import_psycopg()
        import psycopg

        with self.errors():
            return psycopg.connect(self._parameters(replication="database"), autocommit=True).pgconn

    def _parameters(self, **further: str) -> str:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict, make_conninfo

        try:
            parameters = conninfo_to_dict(_DRIVER.sub(r"\1://", self.url))
        except psycopg.ProgrammingError:
            raise ConnectorError(
                f"{self!r} is no address of a PostgreSQL database: write postgresql://user:password@host:port/database"
            ) from None  # the cause would show the password
        formats = " ".join(f"-c {name}={value}" for name, value in _TEXT_FORMATS.items())
        options = f"{parameters.pop('options', None) or ''} {formats}".strip()
        defaults = {"application_name": "kstreams", "connect_timeout": CONNECT_TIMEOUT_S}
        return make_conninfo("", **{**defaults, **parameters, **further, "options": options, "client_encoding": "UTF8"})

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise what psycopg raises as errors of connectors."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            raise self.connector_error(error) from error

    def connector_error(self, error: psycopg.Error) -> ConnectorError:
        """Return the error of a connector for an error of psycopg: whether trying again can help."""
        text = f"PostgreSQL at {self!r}: {masked_url(str(error).strip())}"
        if may_pass(error):
            return ConnectorUnavailableError(text)
        return ConnectorError(f"{text}. {remedy(error)}")


class CopyStream:
    """What a server sends after a COPY or a replication command, message by message, without waiting for long.

    Parameters
    ----------
    server : Server
    connection : PGconn
        The connection, which nothing else uses meanwhile.
    command : str
    """

    def __init__(self, server: Server, connection: PGconn, command: str) -> None:
        from psycopg import errors
        from psycopg.pq import ExecStatus

        self._server = server
        self._connection = connection
        self._has_ended = False
        with server.errors():
            result = connection.exec_(command.encode())
            if result.status not in (ExecStatus.COPY_OUT, ExecStatus.COPY_BOTH):
                raise errors.error_from_result(result)

    def receive(self, count: int, size: int, wait_s: float) -> list[memoryview] | None:
        """Return the next messages: `count` at most, or some more than `size` bytes, or all that have arrived.

        If nothing has arrived, it waits for `wait_s` at most.

        Returns
        -------
        list of memoryview, or None
            None after the last message.

        Raises
        ------
        ConnectorError
            If the server has ended the stream with an error.
        """
        if self._has_ended:
            return None
        with self._server.errors():
            messages = self._receive(count, size, wait_s)
        return None if self._has_ended and not messages else messages

    def send(self, message: bytes) -> None:
        """Send a message to the server."""
        with self._server.errors():
            self._connection.put_copy_data(message)
            self._connection.flush()

    def _receive(self, count: int, size: int, wait_s: float) -> list[memoryview]:
        messages: list[memoryview] = []
        read = self._connection.get_copy_data
        append = messages.append
        for _ in range(count):  # the loop runs once per row: even a call of len would show
            length, data = read(1)
            if length > 0:
                append(data)
                size -= length
                if size <= 0:
                    break
            elif length < 0:
                self._finish()
                break
            elif not self._has_arrived(0 if messages else wait_s):
                break
        return messages

    def _has_arrived(self, wait_s: float) -> bool:
        """Return whether there are further bytes, after waiting for them."""
        readable, _, _ = select.select([self._connection.socket], [], [], wait_s)
        if readable:
            self._connection.consume_input()
        return bool(readable)

    def _finish(self) -> None:
        from psycopg import errors
        from psycopg.pq import ExecStatus

        self._has_ended = True
        while (result := self._connection.get_result()) is not None:
            if result.status == ExecStatus.FATAL_ERROR:
                raise errors.error_from_result(result)


def import_psycopg() -> None:
    """Raise the error that names the extra if psycopg is not installed."""
    try:
        import_module("psycopg")
    except ImportError as error:
        raise ConnectorError("Connections to PostgreSQL need psycopg: pip install 'kstreams-dsl[postgres]'") from error
