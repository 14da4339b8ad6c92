"""`Peers`: instances of an application, asked over HTTP with the token that they share."""

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
from kstreams.server.refusal import moving

Kind = TypeVar("Kind")
logger = logging.getLogger(__name__)


class Peers:
    """Asks instances.

    Parameters
    ----------
    token : str
    certificate : Path or None
        What all instances identify themselves by, where they speak TLS.
    """

    def __init__(self, token: str, certificate: Path | None = None) -> None:
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "*/*"}
        self._tls = None if certificate is None else _trusting(certificate)

    def answer(
        self, host: HostInfo, path: str, parameters: Mapping[str, str], seconds: float, kind: type[Kind]
    ) -> Kind:
        """What another instance answers, as an object of this kind.

        Raises
        ------
        Refusal
            When it refuses, or cannot be reached: then others have its partitions soon.
        """
        try:
            with self.asked(host, quote(path), parameters, seconds) as answer:
                status = answer.status
                body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            logger.info("%s does not answer: %s", host, error)
            raise moving("the instance that has the partition does not answer: ask again") from None
        if status != 200:
            logger.info("%s refuses %s: %s", host, path, body[:200])
            raise moving()
        return decode_json(body, kind)

    def body(self, host: HostInfo, target: str, seconds: float) -> bytes:
        """What another instance answers for itself alone.

        Raises
        ------
        Refusal
            When it refuses, or cannot be reached.
        """
        try:
            with self.asked(host, target, {"local": "true"}, seconds) as answer:
                if answer.status == 200:
                    return answer.read()
        except (OSError, http.client.HTTPException) as error:
            logger.info("%s does not answer: %s", host, error)
        raise moving("another instance does not answer: ask again")

    @contextmanager
    def asked(
        self, host: HostInfo, target: str, parameters: Mapping[str, str], seconds: float
    ) -> Iterator[http.client.HTTPResponse]:
        """An answer that may be read inside; `target` is quoted already, and below the path of the instance."""
        name = host.host.strip("[]")
        request = (
            http.client.HTTPConnection(name, host.port, timeout=seconds)
            if self._tls is None
            else http.client.HTTPSConnection(name, host.port, timeout=seconds, context=self._tls)
        )
        with closing(request) as connection:
            connection.request("GET", f"{host.path}{target}?{urlencode(parameters)}", headers=self._headers)
            with connection.getresponse() as answer:
                yield answer


def _trusting(certificate: Path) -> ssl.SSLContext:
    """Trusts a certificate itself, whoever has signed it, and what the machine trusts."""
    context = ssl.create_default_context(cafile=certificate)
    context.load_default_certs()
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
