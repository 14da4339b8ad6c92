"""`Peers`: the other instances of an application, asked over HTTP with the token that they share."""

from __future__ import annotations

import http.client
import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlencode

import msgspec

from kstreams.runtime.native.stores.metadata import HostInfo
from kstreams.server.page import Page
from kstreams.server.refusal import Refusal, moving

logger = logging.getLogger(__name__)


class Peers:
    """Asks other instances.

    Parameters
    ----------
    token : str
    certificate : Path or None
        What all instances identify themselves by, where they speak TLS.
    """

    def __init__(self, token: str, certificate: Path | None = None) -> None:
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._tls = None if certificate is None else ssl.create_default_context(cafile=certificate)

    def page(self, host: HostInfo, path: str, parameters: Mapping[str, str], seconds: float) -> Page:
        """What another instance answers.

        Raises
        ------
        Refusal
            When it refuses, or cannot be reached: then others have its partitions soon.
        """
        connection = self._connection(host, seconds)
        try:
            connection.request("GET", f"{quote(path)}?{urlencode(parameters)}", headers=self._headers)
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            logger.info("%s does not answer: %s", host, error)
            raise moving("the instance that has the partition does not answer: ask again") from None
        finally:
            connection.close()
        if answer.status != 200:
            logger.info("%s refuses %s: %s", host, path, body[:200])
            raise Refusal(410, "the page before ended in a row that is gone") if answer.status == 410 else moving()
        return msgspec.json.decode(body, type=Page)

    def _connection(self, host: HostInfo, seconds: float) -> http.client.HTTPConnection:
        name = host.host.strip("[]")
        if self._tls is None:
            return http.client.HTTPConnection(name, host.port, timeout=seconds)
        return http.client.HTTPSConnection(name, host.port, timeout=seconds, context=self._tls)
