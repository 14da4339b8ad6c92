"""The routes of topics: which of them may be looked at, and their last records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from kstreams.config import Config
from kstreams.errors import LogError, UnknownTopicError
from kstreams.kernel.decoders import decode_json
from kstreams.log import home_of
from kstreams.log.schema_registries import has_registry, topic_uses
from kstreams.processor.topology.topology import Topology
from kstreams.serdes.base import SerdeUse
from kstreams.server.endpoint import Endpoint, QueryParameter
from kstreams.server.page import JSON
from kstreams.server.refusal import Refusal, moving
from kstreams.server.store_query import whole_number
from kstreams.server.store_query_service import StoreQueryService
from kstreams.server.ui.tail import Ends, Tail, TailPage

_ALL = "*"
_ROWS = 50
_MOST = 200
_PARAMETERS = (
    QueryParameter("limit", "integer", f"Greatest number of records, {_ROWS} unless given, at most {_MOST}."),
    QueryParameter("after", "string", "Only records from these offsets on: `next` of the page before, as JSON."),
)


class TopicRoutes:
    """Answers questions of topics: of those of the topology, and of these only where `server.tail.topics` names them.

    Parameters
    ----------
    service : StoreQueryService
    """

    def __init__(self, service: StoreQueryService) -> None:
        self._service = service
        config = service.streams.config
        self._names = readable_topics(service.streams.topology, config.application_id, config["server.tail.topics"])

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The routes as data."""
        return (
            Endpoint("/v1/topics", "The topics whose records may be looked at.", self.topics),
            Endpoint("/v1/topics/{topic}/tail", "The last records of a topic.", self.tail, _PARAMETERS),
        )

    async def topics(self, request: Request) -> Response:
        """Their names."""
        return Response(msgspec.json.encode({"topics": sorted(self._names)}), media_type=JSON)

    async def tail(self, request: Request) -> Response:
        """A page of records."""
        topic = self._names.get(request.path_params["topic"])
        if topic is None:
            raise Refusal(404, "there is no such topic, or it is not among server.tail.topics")
        most = whole_number(request.query_params, "limit", _ROWS, 1, _MOST) or _ROWS
        ends = _ends(request.query_params.get("after", "{}"))
        page = await self._service.work.do(lambda: self._read(topic, most, ends), self._service.limits.deadline_s)
        return Response(msgspec.json.encode(page, enc_hook=str), media_type=JSON)

    def _read(self, topic: str, most: int, ends: Ends) -> TailPage:
        try:
            config = self._service.streams.config
            with home_of(config).open() as log, _uses_of(topic, config) as uses:
                return Tail(log, topic, most, self._service.limits.deadline_s / 2, uses).after(ends)
        except UnknownTopicError:
            raise Refusal(404, "the topic is not there yet") from None
        except LogError:
            raise moving("the home of the topics does not answer now: ask again") from None


def readable_topics(topology: Topology, application_id: str, declared: tuple[str, ...]) -> dict[str, str]:
    """The topics that may be looked at, by the name that they have in the topology; with their name in the log.

    Examples
    --------
    >>> topology = Topology().add_source("in", "words", key=str, value=str)
    >>> readable_topics(topology, "app", ()), readable_topics(topology, "app", ("*",))
    ({}, {'words': 'words'})
    """
    sinks = [sink.topic for part in topology.sub_topologies for sink in part.sinks if isinstance(sink.topic, str)]
    internal = {topic.name: f"{application_id}-{topic.name}" for topic in topology.internal_topics}
    names = {name: name for name in (*topology.source_topics, *sinks)} | internal
    return {name: full for name, full in names.items() if _ALL in declared or name in declared or full in declared}


@contextmanager
def _uses_of(topic: str, config: Config) -> Iterator[tuple[SerdeUse | None, SerdeUse | None]]:
    """What keys and values of a topic are read with; a page waits for no registry."""
    if not has_registry(config):
        yield None, None
        return
    hasty = config.replace({"task.timeout.ms": 0, "schema.registry.max.retries": 0})
    with topic_uses(topic, hasty) as uses:
        yield uses


def _ends(text: str) -> Ends:
    try:
        return decode_json(text, Ends)
    except msgspec.DecodeError:
        raise Refusal(400, "`after` is none that a page gave as `next`") from None
