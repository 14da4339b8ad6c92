"""The routes of what an application does: its topology, as data and as a picture, and the activity of its processes."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from kstreams.diagram.data import as_data
from kstreams.diagram.svg import as_svg
from kstreams.kernel.decoders import decode_json
from kstreams.server.asking import Asking
from kstreams.server.endpoint import Endpoint
from kstreams.server.page import JSON
from kstreams.server.question import LOCAL, is_local
from kstreams.server.ui.activity import InstanceActivity, activity_of

_SVG = "image/svg+xml"
_PEER_S = 2.0


class ActivityRoutes:
    """Answers whoever shows the application.

    Parameters
    ----------
    asking : Asking
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The routes as data."""
        return (
            Endpoint("/v1/topology", "Sub-topologies with their nodes, topics and stores.", self.topology),
            Endpoint("/v1/topology.svg", "The topology as a picture.", self.picture, media_types=(_SVG,)),
            Endpoint("/v1/activity", "What each instance does now: counters, tasks and lags.", self.activity, (LOCAL,)),
        )

    async def topology(self, request: Request) -> Response:
        """As `kstreams topology --json`, with the description in Kafka Streams' form."""
        topology = self._asking.streams.topology
        return _json({"application_id": self._name(), "description": topology.describe(), **as_data(topology)})

    async def picture(self, request: Request) -> Response:
        """As `kstreams topology --format svg`."""
        topology = self._asking.streams.topology
        seconds = self._asking.limits.deadline_s
        text = await self._asking.work.do(lambda: as_svg(topology, f"Topology of {self._name()}"), seconds)
        return Response(text, media_type=_SVG)

    async def activity(self, request: Request) -> Response:
        """Of this instance first, then of the others; one that does not answer is named with the state `SILENT`."""
        asking = self._asking
        own = await asking.work.do(lambda: activity_of(asking.streams, asking.instance), asking.limits.deadline_s)
        activities = [own]
        if not is_local(request.query_params):
            answers = await asking.others("/v1/activity", min(_PEER_S, asking.limits.deadline_s))
            activities += [_other(instance, body) for instance, body in answers.items()]
        return _json({"application_id": self._name(), "instances": activities})

    def _name(self) -> str:
        return self._asking.streams.config.application_id


def _other(instance: str, body: bytes | None) -> InstanceActivity:
    """What another instance says of itself; nothing but its name where it says nothing."""
    if body is None:
        return InstanceActivity(instance, 0, "SILENT", 0.0, [], [], [], [], [], [], {}, 0)
    [activity] = decode_json(body, _Answer).instances
    return activity


class _Answer(msgspec.Struct):
    instances: list[InstanceActivity]


def _json(content: object) -> Response:
    return Response(msgspec.json.encode(content, enc_hook=str), media_type=JSON)
