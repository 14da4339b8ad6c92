"""`Endpoint`: a route as data, for the router, the OpenAPI document and the tests of safety."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """A parameter in the query of a request.

    Parameters
    ----------
    name : str
    kind : {"string", "integer", "boolean"}
    about : str
        One sentence for the OpenAPI document.
    values : tuple of str
        All that it may be; empty: anything of its kind.
    is_repeated : bool
        Whether it may be given several times.
    """

    name: str
    kind: str
    about: str
    values: tuple[str, ...] = ()
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A route. All are read with GET.

    Parameters
    ----------
    path : str
        As Starlette writes it: `/v1/stores/{store}`.
    about : str
        One sentence for the OpenAPI document.
    answer : callable
    parameters : tuple of QueryParameter
        All others are refused.
    media_types : tuple of str
        Of its answers.
    is_of_stores : bool
        Whether it tells of stores alone: readers who may read some of them may ask.
    is_open : bool
        Whether it answers without the token: for what tells nothing but that the process lives.
    """

    path: str
    about: str
    answer: Callable[[Request], Awaitable[Response]]
    parameters: tuple[QueryParameter, ...] = ()
    media_types: tuple[str, ...] = ("application/json",)
    is_of_stores: bool = False
    is_open: bool = False
