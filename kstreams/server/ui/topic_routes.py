"""`TopicRoutes`: the routes for the readable topics and their last records."""

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
from kstreams.server.http_error import HttpError, unavailable
from kstreams.server.page import JSON
from kstreams.server.store_query import whole_number
from kstreams.server.store_query_service import StoreQueryService
from kstreams.server.ui.tail import Ends, Tail, TailPage

_ALL = "*"
_DEFAULT_LIMIT = 50
_MAX_LIMIT = 200
_PARAMETERS = (
    QueryParameter(
        "limit", "integer", f"The greatest number of records: {_DEFAULT_LIMIT} by default, at most {_MAX_LIMIT}."
    ),
    QueryParameter("after", "string", "The first offset per partition: the `next` of the page before, as JSON."),
)


class TopicRoutes:
    """Routes for the topics of the topology that `server.tail.topics` names.

    Parameters
    ----------
    service : StoreQueryService
    """

    def __init__(self, service: StoreQueryService) -> None:
        self._service = service
        config = service.streams.config
        self._names = readable_topics(service.streams.topology, config.application_id, config["server.tail.topics"])

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the routes."""
        return (
            Endpoint("/v1/topics", "The topics whose records may be read.", self.topics),
            Endpoint("/v1/topics/{topic}/tail", "The last records of a topic.", self.tail, _PARAMETERS),
        )

    async def topics(self, request: Request) -> Response:
        """Return the names of the readable topics."""
        return Response(msgspec.json.encode({"topics": sorted(self._names)}), media_type=JSON)

    async def tail(self, request: Request) -> Response:
        """Return a page of records."""
        topic = self._names.get(request.path_params["topic"])
        if topic is None:
            raise HttpError(404, "there is no such topic, or server.tail.topics does not name it")
        limit = whole_number(request.query_params, "limit", _DEFAULT_LIMIT, 1, _MAX_LIMIT) or _DEFAULT_LIMIT
        ends = _ends(request.query_params.get("after", "{}"))
        page = await self._service.executor.run(lambda: self._read(topic, limit, ends), self._service.limits.deadline_s)
        return Response(msgspec.json.encode(page, enc_hook=str), media_type=JSON)

    def _read(self, topic: str, limit: int, ends: Ends) -> TailPage:
        try:
            config = self._service.streams.config
            with home_of(config).open() as log, _serde_uses(topic, config) as uses:
                return Tail(log, topic, limit, self._service.limits.deadline_s / 2, uses).after(ends)
        except UnknownTopicError:
            raise HttpError(404, "the topic does not exist yet") from None
        except LogError:
            raise unavailable("the home of the topics does not answer now: ask again") from None


def readable_topics(topology: Topology, application_id: str, declared: tuple[str, ...]) -> dict[str, str]:
    """Map the names of the readable topics in the topology to their names in the log.

    Examples
    --------
    >>> topology = Topology().add_source("in", "words", key=str, value=str)
    >>> readable_topics(topology, "app", ()), readable_topics(topology, "app", ("*",))
    ({}, {'words': 'words'})
    """
    sinks = [sink.topic for part in topology.sub_topologies for sink in part.sinks if isinstance(sink.topic, str)]
    internal = {topic.name: f"{application_id}-{topic.name}" for topic in topology.internal_topics}
    names = {name: name for name in (*topology.source_topics, *sinks)} | internal
    return {
        name: log_name
        for name, log_name in names.items()
        if _ALL in declared or name in declared or log_name in declared
    }


@contextmanager
def _serde_uses(topic: str, config: Config) -> Iterator[tuple[SerdeUse | None, SerdeUse | None]]:
    """Return the contexts for the serdes of a topic. The registry is asked without retries, so that no page waits."""
    if not has_registry(config):
        yield None, None
        return
    without_retries = config.replace({"task.timeout.ms": 0, "schema.registry.max.retries": 0})
    with topic_uses(topic, without_retries) as uses:
        yield uses


def _ends(text: str) -> Ends:
    try:
        return decode_json(text, Ends)
    except msgspec.DecodeError:
        raise HttpError(400, "`after` is not the `next` of a page: leave it out to get the last records") from None
