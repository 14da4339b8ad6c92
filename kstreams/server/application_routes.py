"""The routes of the application: its state, its threads, and how far it lags."""

from __future__ import annotations

import os
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from kstreams.errors import KStreamsError
from kstreams.server.asking import Asking
from kstreams.server.endpoint import Endpoint
from kstreams.server.page import JSON
from kstreams.server.refusal import moving


class ApplicationRoutes:
    """Answers questions of the application.

    Parameters
    ----------
    asking : Asking
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The routes as data."""
        return (
            Endpoint("/v1/status", "The state of this instance and its counters.", self.status),
            Endpoint("/v1/lag", "Records that wait, and how far each store is in its changelog.", self.lag),
            Endpoint("/v1/metadata", "The threads of this instance, their tasks and next offsets.", self.metadata),
        )

    async def status(self, request: Request) -> Response:
        """State and counters."""
        streams = self._asking.streams
        progress = await self._known(streams.progress)
        counts = {name: getattr(progress, name) for name in ("records_in", "commits", "lag", "restored", "stalls")}
        out = {"records_out": dict(progress.records_out), "dropped": sum(progress.dropped.values())}
        who = {"application_id": streams.config.application_id, "instance": self._asking.instance, "pid": os.getpid()}
        return _json({**who, "state": streams.state.value, "paused": streams.is_paused, **counts, **out})

    async def lag(self, request: Request) -> Response:
        """What is left to do."""
        streams = self._asking.streams
        progress, lags = await self._known(lambda: (streams.progress(), streams.all_local_store_partition_lags()))
        stores = [
            {"store": name, "partition": number, "offset": at.current_offset, "end": at.end_offset, "lag": at.lag}
            for name, places in lags.items()
            if streams.topology.stores[name].queryable
            for number, at in places.items()
        ]
        return _json({"instance": self._asking.instance, "lag": progress.lag, "stores": stores})

    async def metadata(self, request: Request) -> Response:
        """Threads and tasks."""
        threads = [
            {"name": thread.name, "state": thread.state.value, "tasks": [_task(task) for task in thread.tasks]}
            for thread in await self._known(self._asking.streams.metadata_for_local_threads)
        ]
        return _json({"instance": self._asking.instance, "threads": threads})

    async def _known(self, ask: Any) -> Any:
        try:
            return await self._asking.work.do(ask, self._asking.limits.deadline_s)
        except KStreamsError:
            raise moving("the application does not answer now: ask again") from None


def _task(task: Any) -> dict[str, Any]:
    return {"id": task.task_id, "next_offsets": {str(source): offset for source, offset in task.next_offsets.items()}}


def _json(content: dict[str, Any]) -> Response:
    return Response(msgspec.json.encode(content, enc_hook=str), media_type=JSON)
