"""`Router`: finds the endpoint of a request by the parts of its path, and turns exceptions into responses.

Starlette's router tries one regular expression after the other behind three layers of middleware, which takes longer
than the look-up of a key.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kstreams.server.endpoint import Endpoint
from kstreams.server.guard import READER, route_path
from kstreams.server.http_error import HttpError
from kstreams.server.store_query import check_parameters

logger = logging.getLogger(__name__)


class _Branch:
    """A node of the tree of paths: the endpoints whose paths begin with the same parts."""

    def __init__(self) -> None:
        self.endpoint: Endpoint | None = None
        self.words: dict[str, _Branch] = {}
        self.any_part: tuple[str, _Branch] | None = None  # {name}
        self.path_tail: tuple[str, Endpoint] | None = None  # {name:path}

    def add(self, parts: list[str], endpoint: Endpoint) -> None:
        if not parts:
            self.endpoint = endpoint
        elif parts[0].endswith(":path}"):
            self.path_tail = parts[0][1 : -len(":path}")], endpoint
        elif parts[0].startswith("{"):
            self.any_part = self.any_part or (parts[0][1:-1], _Branch())
            self.any_part[1].add(parts[1:], endpoint)
        else:
            self.words.setdefault(parts[0], _Branch()).add(parts[1:], endpoint)


class Router:
    """An ASGI application that answers GET requests.

    Parameters
    ----------
    endpoints : sequence of Endpoint
        The paths consist of words, `{name}` for one non-empty part, and `{name:path}` for all following parts.

    Examples
    --------
    >>> async def answer(request): ...
    >>> router = Router([Endpoint("/v1/stores/{store}/keys/{key:path}", "The rows of a key.", answer)])
    >>> router.find("/v1/stores/counts/keys/a/b")[1]
    {'store': 'counts', 'key': 'a/b'}
    """

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._root = _Branch()
        for endpoint in endpoints:
            self._root.add(endpoint.path.split("/")[1:], endpoint)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        scope = request.scope
        try:
            endpoint, scope["path_params"] = self.find(route_path(scope))
            if scope["method"] != "GET":
                raise HttpError(405, "the server accepts no other method than GET")
            if not endpoint.is_open and not endpoint.is_of_stores and scope[READER].stores is not None:
                raise HttpError(403, "the token gives access to stores only")
            if scope["query_string"]:
                check_parameters(request, endpoint.parameters)
            return await endpoint.answer(request)
        except HttpError as error:
            return error.response()
        except Exception as error:
            logger.error("a request failed", exc_info=error)
            return HttpError(500, "the request failed: see the log of the application").response()

    def find(self, path: str) -> tuple[Endpoint, dict[str, str]]:
        """Return the endpoint of a path, and the named parts of the path.

        Raises
        ------
        HttpError
            If no endpoint has this path.
        """
        parts = path.split("/")
        path_parameters = dict[str, str]()
        branch = self._root
        for number, part in enumerate(parts[1:], 1):
            if (word := branch.words.get(part)) is not None:
                branch = word
            elif branch.path_tail is not None:
                path_parameters[branch.path_tail[0]] = "/".join(parts[number:])
                return branch.path_tail[1], path_parameters
            elif branch.any_part is not None and part:
                name, branch = branch.any_part
                path_parameters[name] = part
            else:
                raise _no_route()
        if branch.endpoint is None:
            raise _no_route()
        return branch.endpoint, path_parameters


def _no_route() -> HttpError:
    return HttpError(404, "there is no such route")
