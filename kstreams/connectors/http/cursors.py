"""Cursors of polled addresses: how the position in a service becomes a request, and a response the next position.

Each cursor defines its positions, as values that JSON can hold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urljoin

import httpx

from kstreams.connectors.api import Position
from kstreams.connectors.http.records import text_at
from kstreams.connectors.http.service import origin
from kstreams.errors import ConnectorError
from kstreams.kernel.decoders import decode_json


class Progress(NamedTuple):
    """The records of a response that are new, the position after them, and whether more can be fetched at once."""

    rows: Sequence[bytes]
    position: Position
    has_more: bool


class Cursor:
    """The whole document is fetched each time, and becomes records again when it has changed.

    The position is a digest of the document, so that a restart does not repeat it.
    """

    def request(self, client: httpx.Client, url: str, position: Position | None) -> httpx.Request:
        """Return the request at a position. None is the beginning."""
        return client.build_request("GET", url)

    def progress(self, position: Position | None, response: httpx.Response, rows: Sequence[bytes]) -> Progress:
        """Return what is new in a response.

        Parameters
        ----------
        position : Position or None
            The position of the request.
        response : httpx.Response
        rows : sequence of bytes
            All records of the response.
        """
        digest = hashlib.sha256(response.content).hexdigest()[:32]
        return Progress(() if digest == position else rows, digest, False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class NextLink(Cursor):
    """Each page names the address of the next one. The last page is fetched again until it does.

    The position is the address of a page, and the number of records that were read of it. A page may only grow at its
    end.

    Parameters
    ----------
    path : str
        The field of the document with the address, such as `paging.next`. Empty for the header `Link` with
        `rel="next"`.
    """

    def __init__(self, path: str = "") -> None:
        self.path = path

    def request(self, client: httpx.Client, url: str, position: Position | None) -> httpx.Request:
        return client.build_request("GET", url if position is None else position["url"])

    def progress(self, position: Position | None, response: httpx.Response, rows: Sequence[bytes]) -> Progress:
        page = str(response.request.url)
        new_rows = rows[_rows_before(position) :]
        following = self._next(response)
        if not following:
            return Progress(new_rows, {"url": page, "rows": len(rows)}, False)
        address = httpx.URL(urljoin(page, following))
        if origin(address) != origin(response.request.url):
            raise ConnectorError(f"the next page is on another host, {origin(address)}: credentials are not sent there")
        return Progress(new_rows, {"url": str(address), "rows": 0}, str(address) != page)

    def _next(self, response: httpx.Response) -> str:
        if not self.path:
            return response.links.get("next", {}).get("url", "")
        try:
            return decode_json(text_at(response.content, self.path), str | None) or ""
        except ConnectorError:
            return ""  # the last page has no such field

    def __repr__(self) -> str:
        return f"NextLink({self.path!r})"


class Page(Cursor):
    """Pages have numbers. A page with fewer records than its size is the last, and is fetched again.

    The position is the number of a page, and the number of records that were read of it. A page may only grow at its
    end.

    Parameters
    ----------
    parameter : str
        The query parameter with the number of the page.
    size : int
        The number of records of a full page.
    first : int
        The number of the first page.
    """

    def __init__(self, parameter: str, *, size: int, first: int = 1) -> None:
        self.parameter = parameter
        self.size = size
        self.first = first

    def request(self, client: httpx.Client, url: str, position: Position | None) -> httpx.Request:
        return client.build_request("GET", httpx.URL(url).copy_set_param(self.parameter, self._number(position)))

    def progress(self, position: Position | None, response: httpx.Response, rows: Sequence[bytes]) -> Progress:
        number = self._number(position)
        new_rows = rows[_rows_before(position) :]
        if len(rows) < self.size:
            return Progress(new_rows, {"page": number, "rows": len(rows)}, False)
        return Progress(new_rows, {"page": number + 1, "rows": 0}, True)

    def _number(self, position: Position | None) -> int:
        return self.first if position is None else position["page"]

    def __repr__(self) -> str:
        return f"Page({self.parameter!r}, size={self.size})"


class LastField(Cursor):
    """Each request names the greatest value that a field of the records had, and the service returns what follows.

    The position is this value, and digests of the records that have it. So it does not matter whether the service
    returns records with this value again.

    Parameters
    ----------
    field : str
        A field of the records whose values grow: an increasing id, or the time of a change.
    parameter : str
        The query parameter with the value. Default: the name of the field.
    """

    def __init__(self, field: str, *, parameter: str = "") -> None:
        self.field = field
        self.parameter = parameter or field

    def request(self, client: httpx.Client, url: str, position: Position | None) -> httpx.Request:
        if position is None:
            return client.build_request("GET", url)
        return client.build_request("GET", httpx.URL(url).copy_set_param(self.parameter, position["last"]))

    def progress(self, position: Position | None, response: httpx.Response, rows: Sequence[bytes]) -> Progress:
        new_rows = list[bytes]()
        last: Any = None if position is None else position["last"]
        digests: list[str] = [] if position is None else position["digests"]
        values = [self._value(row) for row in rows]
        for row, value in zip(rows, values, strict=True):
            digest = hashlib.sha256(row).hexdigest()[:16]
            if position is not None and (value < position["last"] or digest in position["digests"]):
                continue
            new_rows.append(row)
            if last is None or value > last:
                last = value
                digests = [digest]
            elif value == last:
                digests = [*digests, digest]
        if not new_rows:
            return Progress(new_rows, position, False)
        return Progress(new_rows, {"last": last, "digests": digests}, True)

    def _value(self, row: bytes) -> Any:
        value = decode_json(text_at(row, self.field))
        if not isinstance(value, int | float | str):
            raise ConnectorError(
                f"the field {self.field!r} of a record is {value!r}: a cursor needs a number or a text"
            )
        return value

    def __repr__(self) -> str:
        return f"LastField({self.field!r})"


def _rows_before(position: Position | None) -> int:
    return 0 if position is None else position["rows"]
