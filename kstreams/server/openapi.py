"""The OpenAPI document, made from the table of routes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from kstreams.server.endpoint import Endpoint

_REFUSALS = {
    "400": "The question makes no sense.",
    "401": "The token is missing or wrong.",
    "403": "The server is addressed by a name that it does not know.",
    "404": "There is no such store or partition.",
    "406": "The values are of several types, which no Arrow stream holds.",
    "413": "The request has a body.",
    "414": "The address is too long.",
    "431": "The headers are too long.",
    "500": "The question failed; the log of the application says why.",
    "503": "Not now: ask again after the seconds that Retry-After says.",
    "504": "There was no answer in time.",
}


def openapi(endpoints: Iterable[Endpoint], version: str, stores: Sequence[str] = ()) -> dict[str, Any]:
    """The document; it names the stores that may be asked.

    Examples
    --------
    >>> openapi([], "1")["openapi"]
    '3.1.0'
    """
    return {
        "openapi": "3.1.0",
        "info": {"title": "Stores of a kstreams application", "version": version},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "paths": {
            endpoint.path.replace(":path}", "}"): {"get": _operation(endpoint, stores)} for endpoint in endpoints
        },
    }


def _operation(endpoint: Endpoint, stores: Sequence[str]) -> dict[str, Any]:
    named = re.findall(r"{(\w+)", endpoint.path)
    parameters = {"store": stores}
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": _schema("string", parameters.get(name, ()))}
        for name in named
    ]
    in_query = [
        {
            "name": parameter.name,
            "in": "query",
            "description": parameter.about,
            "schema": _schema(parameter.kind, parameter.values),
        }
        for parameter in endpoint.parameters
    ]
    answers: dict[str, Any] = {kind: {} for kind in endpoint.media_types}
    refusals = {status: {"description": text} for status, text in _REFUSALS.items()}
    return {
        "summary": endpoint.about,
        "parameters": [*in_path, *in_query],
        "security": [] if endpoint.is_open else [{"token": []}],
        "responses": {"200": {"description": "The answer.", "content": answers}, **refusals},
    }


def _schema(kind: str, values: Sequence[str]) -> dict[str, Any]:
    return {"type": kind, "enum": list(values)} if values else {"type": kind}
