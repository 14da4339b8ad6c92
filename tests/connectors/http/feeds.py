"""A feed of orders over HTTP, paged in several ways, which answers some requests with failures."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kstreams.testing.connectors import order_of
from tests.connectors.http.serving import reset


class Feed:
    """The orders 0 to `count`. `/linked`, `/nested`, `/numbered`, `/after`, `/from` and `/all` page them."""

    def __init__(self, count: int, *, page: int = 10, failures: random.Random | None = None) -> None:
        self.count = count
        self.page = page
        self.requests: list[Request] = []
        self._failures = failures

    async def handle(self, request: Request) -> Response:
        self.requests.append(request)
        failure = self._failures.random() if self._failures else 1.0
        if failure < 0.1:
            return Response(status_code=500)
        if failure < 0.15:
            return Response(status_code=503, headers={"retry-after": "0"})
        if failure < 0.2:
            reset(request)
            return Response()
        handlers = {
            "linked": self._linked,
            "nested": self._nested,
            "numbered": self._numbered,
            "after": self._after,
            "from": self._from,
            "all": self._all,
        }
        return handlers[request.path_params["path"]](request)

    def orders(self) -> list[dict[str, Any]]:
        return [msgspec.structs.asdict(order_of(number)) for number in range(self.count)]

    def _linked(self, request: Request) -> Response:
        start = int(request.query_params.get("start", 0))
        end = start + self.page
        headers = {"link": f'</linked?start={end}>; rel="next"'} if end < self.count else {}
        return JSONResponse(self.orders()[start:end], headers=headers)

    def _nested(self, request: Request) -> Response:
        start = int(request.query_params.get("start", 0))
        end = start + self.page
        following = {"next": f"?start={end}"} if end < self.count else {}
        return JSONResponse({"data": {"orders": self.orders()[start:end]}, "paging": following})

    def _numbered(self, request: Request) -> Response:
        start = (int(request.query_params["page"]) - 1) * self.page
        return JSONResponse(self.orders()[start : start + self.page])

    def _after(self, request: Request) -> Response:
        start = int(request.query_params.get("id", -1)) + 1
        return JSONResponse(self.orders()[start : start + self.page])

    def _from(self, request: Request) -> Response:
        """Also return the order of the cursor itself."""
        start = int(request.query_params.get("from", 0))
        return JSONResponse(self.orders()[start : start + self.page])

    def _all(self, request: Request) -> Response:
        etag = f'"{self.count}"'
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304)
        lines = "".join(json.dumps(order) + "\n" for order in self.orders())
        return Response(lines, headers={"etag": etag})
