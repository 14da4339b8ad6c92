"""`Peers`: an HTTP client for the other instances of an application, which share a token."""

from __future__ import annotations

import http.client
import logging
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlencode

from kstreams.kernel.decoders import decode_json
from kstreams.runtime.native.stores.metadata import HostInfo
from kstreams.server.http_error import unavailable

Kind = TypeVar("Kind")
logger = logging.getLogger(__name__)


class Peers:
    """An HTTP client for instances.

    Parameters
    ----------
    token : str
    certificate : Path or None
        The certificate of all instances if they use TLS.
    """

    def __init__(self, token: str, certificate: Path | None = None) -> None:
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "*/*"}
        self._tls = None if certificate is None else _tls_context(certificate)

    def get(self, host: HostInfo, path: str, parameters: Mapping[str, str], timeout_s: float, kind: type[Kind]) -> Kind:
        """Return the answer of another instance as an object of a type.

        Raises
        ------
        HttpError
            If the instance refuses or cannot be reached. Other instances take over its partitions soon.
        """
        try:
            with self.request(host, quote(path), parameters, timeout_s) as response:
                status = response.status
                body = response.read()
        except (OSError, http.client.HTTPException) as error:
            logger.info("%s does not answer: %s", host, error)
            raise unavailable("the instance that has the partition does not answer: ask again") from None
        if status != 200:
            logger.info("%s refuses %s: %s", host, path, body[:200])
            raise unavailable()
        return decode_json(body, kind)

    def get_local(self, host: HostInfo, target: str, timeout_s: float) -> bytes:
        """Return the answer that another instance gives for itself alone.

        Raises
        ------
        HttpError
            If the instance refuses or cannot be reached.
        """
        try:
            with self.request(host, target, {"local": "true"}, timeout_s) as response:
                if response.status == 200:
                    return response.read()
        except (OSError, http.client.HTTPException) as error:
            logger.info("%s does not answer: %s", host, error)
        raise unavailable("another instance does not answer: ask again")

    @contextmanager
    def request(
        self, host: HostInfo, target: str, parameters: Mapping[str, str], timeout_s: float
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request. The `with` block reads the response.

        `target` is a quoted path below the path of the instance.
        """
        name = host.host.strip("[]")
        new_connection = (
            http.client.HTTPConnection(name, host.port, timeout=timeout_s)
            if self._tls is None
            else http.client.HTTPSConnection(name, host.port, timeout=timeout_s, context=self._tls)
        )
        with closing(new_connection) as connection:
            connection.request("GET", f"{host.path}{target}?{urlencode(parameters)}", headers=self._headers)
            with connection.getresponse() as response:
                yield response


def _tls_context(certificate: Path) -> ssl.SSLContext:
    """Return a context that trusts a certificate whoever has signed it, and the certificates of the machine."""
    context = ssl.create_default_context(cafile=certificate)
    context.load_default_certs()
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
