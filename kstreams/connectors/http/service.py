"""`Service`: the address of an HTTP service with its credentials, the requests to it, and what its statuses mean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from urllib.parse import parse_qsl, quote, urlsplit

import httpx

from kstreams.errors import ConnectorError, ConnectorUnavailableError
from kstreams.kernel.clock import SystemClock

MAX_RETRY_AFTER_S = 3_600.0
"""The longest time that a service may ask clients to wait."""

_RETRIED = frozenset({408, 425, 429})
_SECRET_NAME = re.compile(r"(?i)token|secret|password|passwd|signature|credential|api[-_]?key|^key$|^sig$|^auth$")
_FRAMING = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""The headers that describe the bytes of a connection, and not the body that they hold."""
_EXCERPT = 200
_UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
_EXPIRED = "expired"  # a certificate that its owner will renew
_MAX_CONNECT_S = 10.0


class RetryLaterError(ConnectorUnavailableError):
    """A service that answered with a status that will pass, such as 503, and the seconds in its `Retry-After`."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Pause:
    """The time that a service asked clients to wait by its last `Retry-After`. All readers and writers share it."""

    def __init__(self) -> None:
        self._until_ms = 0

    def begin(self, seconds: float) -> None:
        """Note a `Retry-After`."""
        self._until_ms = SystemClock().uptime_ms() + int(seconds * 1000)

    @property
    def remaining_s(self) -> float:
        """The seconds that remain. 0 if there are none."""
        return max(self._until_ms - SystemClock().uptime_ms(), 0) / 1000


@dataclass(frozen=True, slots=True)
class Service:
    """An HTTP service. Credentials appear in no message and no `repr`.

    Parameters
    ----------
    url : str
        An absolute address, `http://` or `https://`. It may hold a user and a password.
    headers : mapping of str to str
    token : str
        A bearer token. Empty for none.
    timeout_s : float
        The longest wait for a connection, for a part of a response, and for sending a part of a request.
    max_body_bytes : int
        The longest response.
    pause : Pause

    Raises
    ------
    ConnectorError
        If the address is not absolute.

    Examples
    --------
    >>> Service("https://ann:tiger@example.com/trades?token=abc&page=1")
    Service('https://ann:***@example.com/trades?token=***&page=1')
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    token: str = ""
    timeout_s: float = 10.0
    max_body_bytes: int = 64 * 1024 * 1024
    pause: Pause = field(default_factory=Pause, compare=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConnectorError(f"{self.masked(self.url)!r} is no address of an HTTP service: write https://HOST/PATH")

    @property
    def place(self) -> str:
        """The address without query and credentials, which names the service in positions."""
        url = httpx.URL(self.url)
        return f"{origin(url)}{url.path}"

    def client(self) -> httpx.Client:
        """Return a client that sends the credentials. It follows no redirect, which could carry them elsewhere."""
        authorization = {"authorization": f"Bearer {self.token}"} if self.token else {}
        timeout = httpx.Timeout(self.timeout_s, connect=min(self.timeout_s, _MAX_CONNECT_S))
        return httpx.Client(headers={**self.headers, **authorization}, timeout=timeout, follow_redirects=False)

    def fetch(self, client: httpx.Client, request: httpx.Request) -> httpx.Response:
        """Send a request and return the response with its body, unless the status is one that will pass.

        Raises
        ------
        RetryLaterError
            For 408, 425, 429 and from 500 on.
        ConnectorUnavailableError
            If there is no connection, or it broke.
        ConnectorError
            If the response is too long.
        """
        with self.answering(request), self.opened(client, request) as stream:
            body = self._body(stream)
        headers = [(name, value) for name, value in stream.headers.multi_items() if name not in _FRAMING]
        response = httpx.Response(stream.status_code, headers=headers, content=body, request=request)
        self.check_available(response)
        return response

    @contextmanager
    def opened(self, client: httpx.Client, request: httpx.Request) -> Iterator[httpx.Response]:
        """Send a request, and close the response at the end of the `with` block."""
        response = client.send(request, stream=True)
        try:
            yield response
        finally:
            response.close()

    @contextmanager
    def answering(self, request: httpx.Request) -> Iterator[None]:
        """Turn errors of the connection into ConnectorUnavailableError, or into ConnectorError if they do not pass."""
        address = self.masked(str(request.url))
        try:
            yield
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError) as error:
            raise ConnectorError(  # without the text of the error, which shows credentials
                f"{address} cannot be requested ({type(error).__name__}): check the address, and the headers and the "
                "token for line breaks"
            ) from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            reason = self.masked(str(error)) or type(error).__name__
            if _UNTRUSTED in reason and _EXPIRED not in reason:
                raise ConnectorError(
                    f"{address} has a certificate that is not trusted: {reason}. Check the address, and name the "
                    "certificate of its authority by SSL_CERT_FILE"
                ) from None
            raise ConnectorUnavailableError(f"{address} does not answer: {reason}") from None

    def check_available(self, response: httpx.Response) -> None:
        """Raise RetryLaterError if the status of a response will pass."""
        if response.status_code in _RETRIED or response.status_code >= 500:
            self.pause.begin(retry_after_s(response.headers))
            raise RetryLaterError(self.describe(response), retry_after_s(response.headers))

    def check_pause(self) -> None:
        """Raise RetryLaterError if the service wants no request yet."""
        remaining_s = self.pause.remaining_s
        if remaining_s > 0:
            message = f"{self.masked(self.url)} asks to wait for {remaining_s:.1f} s, by Retry-After"
            raise RetryLaterError(message, remaining_s)

    def describe(self, response: httpx.Response) -> str:
        """Return one line about a response: address, status, and the beginning of its body."""
        address = self.masked(str(response.request.url))
        body = response.text[:_EXCERPT] if response.is_stream_consumed else ""
        excerpt = self.masked(" ".join(body.split()))
        return f"{address} answered {response.status_code} {response.reason_phrase}{': ' if excerpt else ''}{excerpt}"

    def _body(self, response: httpx.Response) -> bytes:
        body = bytearray()
        for part in response.iter_bytes():
            body += part
            if len(body) > self.max_body_bytes:
                raise ConnectorError(
                    f"the response of {self.masked(str(response.url))} is longer than {self.max_body_bytes:,} bytes: "
                    "ask for smaller pages, or set max_body_bytes"
                )
        return bytes(body)

    def masked(self, text: str) -> str:
        """Return a text with `***` in place of each credential."""
        for secret in self._secrets():
            for form in (secret, quote(secret, safe="")):
                text = text.replace(form, "***")
        return text

    def _secrets(self) -> list[str]:
        parts = urlsplit(self.url)
        secrets = [self.token, parts.password or ""]
        secrets += [value for name, value in parse_qsl(parts.query) if _SECRET_NAME.search(name)]
        for name, value in self.headers.items():
            if name.lower() in ("authorization", "cookie", "proxy-authorization") or _SECRET_NAME.search(name):
                secrets += [value, value.partition(" ")[2]]
        return sorted(filter(None, secrets), key=len, reverse=True)

    def __repr__(self) -> str:
        return f"Service({self.masked(self.url)!r})"


def origin(url: httpx.URL) -> str:
    """Return scheme, host and port of an address.

    Examples
    --------
    >>> origin(httpx.URL("https://ann:tiger@example.com:8443/trades"))
    'https://example.com:8443'
    """
    return f"{url.scheme}://{url.netloc.decode()}"


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Return the seconds that a header `Retry-After` asks for, at most an hour. 0 without a valid header.

    Examples
    --------
    >>> retry_after_s({"retry-after": "2"}), retry_after_s({}), retry_after_s({"retry-after": "soon"})
    (2.0, 0.0, 0.0)
    """
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text), MAX_RETRY_AFTER_S)
    try:
        at_s = parsedate_to_datetime(text).timestamp()
    except (ValueError, IndexError):
        return 0.0
    return min(max(at_s - SystemClock().wall_ms() / 1000, 0.0), MAX_RETRY_AFTER_S)
