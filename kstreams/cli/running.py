"""`RunningApplication`: an application that serves queries on this machine, found by its state directory."""

from __future__ import annotations

import http.client
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from kstreams.config import Config
from kstreams.errors import StateError
from kstreams.kernel.decoders import decode_json

if TYPE_CHECKING:
    from kstreams.server.instances import Instance

_PATIENCE_S = 10.0
_RECONNECT_S = 60.0  # of a watch: the restart of an application takes longer than the move of a task
_PAUSE_S = 0.2
_ANSWER_S = 15.0
_SILENCE_S = 60.0  # of a watch; the server sends a heartbeat four times as often


class RunningApplication:
    """A client of the instances of one application.

    Parameters
    ----------
    config : Config
        With `application.id` and `state.dir`.
    instances : list of Instance
        At least one.
    """

    def __init__(self, config: Config, instances: list[Instance]) -> None:
        from kstreams.server.instances import Instances
        from kstreams.server.peers import Peers

        self.instances = instances
        self._config = config
        certificate = Path(instances[0].certificate) if instances[0].certificate else None
        self._peers = Peers(Instances(config).token(), certificate)

    def rows(
        self, store: str, key: str | None, parameters: Mapping[str, str], limit: int | None
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows of a store, page by page. `limit` is the greatest number of rows, or None."""
        target = rows_of(store, key)
        remaining = limit
        cursor: dict[str, str] = {}
        while remaining is None or remaining > 0:
            query = {**parameters, **cursor, "limit": str(min(1_000, remaining or 1_000))}
            page = self.ask(target, query)
            yield from page["rows"]
            remaining = None if remaining is None else remaining - len(page["rows"])
            if page["next"] is None:
                return
            cursor = {"cursor": page["next"]}

    def ask(self, target: str, parameters: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the response of any instance. While tasks move, the request is sent again for some seconds.

        Raises
        ------
        StateError
            If no instance answers.
        """
        until = monotonic() + _PATIENCE_S
        while True:
            for instance in self.instances:
                status, answer = self._answer(instance, target, parameters or {})
                if status == 200:
                    return answer
                if status != 503:
                    raise StateError(answer["error"])
            if monotonic() > until:
                raise StateError(answer["error"])
            sleep(_PAUSE_S)

    def ask_all(self, target: str) -> list[dict[str, Any]]:
        """Return the responses of the instances that answer."""
        answers = [self._answer(instance, target, {}) for instance in self.instances]
        return [answer for status, answer in answers if status == 200]

    def watch(self, store: str, parameters: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Yield the changes of rows. If an instance ends, the changes of another one follow, from its present rows on.

        Raises
        ------
        StateError
            If an instance refuses the request, or no instance has answered for a minute.
        """
        pending = [(self, instance) for instance in self.instances]
        until = monotonic() + _RECONNECT_S
        reason = "the application has ended"
        while monotonic() < until:
            for application, instance in pending:
                try:
                    for event in application._events(instance, store, parameters):
                        yield event
                        until = monotonic() + _RECONNECT_S
                except (OSError, http.client.HTTPException) as error:
                    reason = f"{instance.address}: {error}"
            sleep(_PAUSE_S)
            running_application = running(self._config)
            pending = (
                []
                if running_application is None
                else [(running_application, instance) for instance in running_application.instances]
            )
        raise StateError(f"no instance answers any more: {reason}")

    def _events(self, instance: Instance, store: str, parameters: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Yield the events of one instance until it ends. There are none if it cannot answer now."""
        name = ""
        target = f"/v1/stores/{quote(store, safe='')}/watch"
        with self._requested(instance, target, parameters, _SILENCE_S) as answer:
            if answer.status not in (200, 503):
                raise StateError(decode_json(answer.read())["error"])
            for line in answer if answer.status == 200 else ():
                field, _, content = line.decode().rstrip("\n").partition(": ")
                name = content if field == "event" else name
                if field == "data":
                    yield {"event": name, **decode_json(content)}

    def _answer(self, instance: Instance, target: str, parameters: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        try:
            with self._requested(instance, target, parameters, _ANSWER_S) as answer:
                return answer.status, decode_json(answer.read())
        except (OSError, http.client.HTTPException, msgspec.DecodeError) as error:
            return 503, {"error": f"{instance.address} does not answer: {error}"}

    def _requested(
        self, instance: Instance, target: str, parameters: Mapping[str, str], seconds: float
    ) -> AbstractContextManager[http.client.HTTPResponse]:
        from kstreams.runtime.native.stores.metadata import HostInfo

        host = HostInfo.of(instance.address)
        if host is None:
            raise StateError(f"the running application names no address that answers: {instance.address!r}")
        return self._peers.request(host, target, parameters, seconds)


def rows_of(store: str, key: str | None) -> str:
    """Return the route of the rows of a store, or of one key.

    Examples
    --------
    >>> rows_of("counts", "a/b c")
    '/v1/stores/counts/keys/a%2Fb%20c'
    """
    place = f"/v1/stores/{quote(store, safe='')}"
    return f"{place}/rows" if key is None else f"{place}/keys/{quote(key, safe='')}"


def settings_of_application(application_id: str | None, app: str | None, state_dir: Path | None) -> Config:
    """Return the settings of an application's file, or of the environment and `kstreams.toml` if there is no file."""
    settings = {"application.id": application_id, "state.dir": state_dir}
    named = {key: value for key, value in settings.items() if value is not None}
    if app is not None:
        from kstreams.app import load_app

        return load_app(app, named).config
    return Config.load().replace(named)


def running(config: Config) -> RunningApplication | None:
    """Return the running application of these settings, or the only one in `state.dir`. None if none answers.

    Raises
    ------
    StateError
        If several applications answer, and the settings have no `application.id`.
    """
    from kstreams.server.instances import running_instances

    application_id = config.explicit.get("application.id")
    instances = [
        instance
        for instance in running_instances(Path(config["state.dir"]))
        if application_id in (None, instance.application_id)
    ]
    ids = sorted({instance.application_id for instance in instances})
    if len(ids) > 1:
        raise StateError(f"several applications answer: name one by --application-id: {', '.join(ids)}")
    return RunningApplication(config.replace({"application.id": ids[0]}), instances) if instances else None


def with_state(config: Config) -> Config:
    """Return the settings with the id of the application whose stores are in `state.dir`.

    Raises
    ------
    StateError
        If there is no such application, or if there are several and the settings have no `application.id`.
    """
    application_id = config.explicit.get("application.id")
    folder = Path(config["state.dir"])
    names = sorted(
        file.parent.name for file in folder.glob("*/topology.json") if application_id in (None, file.parent.name)
    )
    if not names:
        raise StateError(
            f"no application {'' if application_id is None else f'{application_id!r} '}"
            f"runs or has left stores in {folder}"
        )
    if len(names) > 1:
        raise StateError(f"several applications have left stores: name one by --application-id: {', '.join(names)}")
    return config.replace({"application.id": names[0]})


def require_running(config: Config) -> RunningApplication:
    """Return the running application of these settings. Raises StateError if none answers."""
    application = running(config)
    if application is None:
        name = config.explicit.get("application.id")
        which = "no application" if name is None else f"the application {name!r} does not run, or no instance of it"
        raise StateError(
            f"{which} answers in {config['state.dir']}: start it with `kstreams run --serve`, and name its --state-dir"
        )
    return application
