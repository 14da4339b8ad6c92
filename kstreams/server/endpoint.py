"""`Endpoint`: a route as data. The router, the OpenAPI document and the security tests read it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """A parameter in the query string of a request.

    Parameters
    ----------
    name : str
    kind : {"string", "integer", "boolean"}
    about : str
        One sentence for the OpenAPI document.
    values : tuple of str
        The permitted values. Empty if every value of the kind is permitted.
    is_repeated : bool
        True if a request may have the parameter more than once.
    """

    name: str
    kind: str
    about: str
    values: tuple[str, ...] = ()
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A route for GET requests.

    Parameters
    ----------
    path : str
        The path in the notation of Starlette: `/v1/stores/{store}`.
    about : str
        One sentence for the OpenAPI document.
    answer : callable
    parameters : tuple of QueryParameter
        The permitted parameters. A request with any other parameter is refused.
    media_types : tuple of str
        The media types of the responses.
    is_of_stores : bool
        True if the route reveals nothing but stores. A token for some stores is then sufficient.
    is_open : bool
        True if the route needs no token, because it reveals nothing about the data.
    """

    path: str
    about: str
    answer: Callable[[Request], Awaitable[Response]]
    parameters: tuple[QueryParameter, ...] = ()
    media_types: tuple[str, ...] = ("application/json",)
    is_of_stores: bool = False
    is_open: bool = False
