"""The routes for operations: whether the process lives and is ready, and its metrics for Prometheus."""

from __future__ import annotations

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.requests import Request
from starlette.responses import Response

from kstreams.metrics.prometheus import PrometheusCollector
from kstreams.runtime.native.lifecycle import State
from kstreams.server.asking import Asking
from kstreams.server.endpoint import Endpoint
from kstreams.server.page import JSON

_ENDED = (State.PENDING_ERROR, State.ERROR, State.PENDING_SHUTDOWN, State.NOT_RUNNING)


class OperationRoutes:
    """Answers who supervises and measures the process. Health needs no token: it tells one word.

    Parameters
    ----------
    asking : Asking
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._registry = CollectorRegistry()
        self._registry.register(PrometheusCollector(asking.streams))

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The routes as data."""
        kinds = (CONTENT_TYPE_PLAIN_0_0_4,)
        return (
            Endpoint(
                "/health/live",
                "Whether the process is to go on: 503 when it is to be replaced.",
                self.live,
                is_open=True,
            ),
            Endpoint(
                "/health/ready", "Whether all its tasks run: 503 while stores are restored.", self.ready, is_open=True
            ),
            Endpoint("/metrics", "All metrics, as Prometheus reads them.", self.metrics, media_types=kinds),
        )

    async def live(self, request: Request) -> Response:
        """It lives until an error or a stop ends it."""
        return _health(self._asking.streams.state not in _ENDED, "live")

    async def ready(self, request: Request) -> Response:
        """It is ready while all tasks that it was given run."""
        return _health(self._asking.streams.state is State.RUNNING, "ready")

    async def metrics(self, request: Request) -> Response:
        """The metrics as they are now."""
        text = await self._asking.work.do(lambda: generate_latest(self._registry), self._asking.limits.deadline_s)
        return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _health(holds: bool, word: str) -> Response:
    body = {"status": word if holds else f"not {word}"}
    return Response(msgspec.json.encode(body), 200 if holds else 503, media_type=JSON)
