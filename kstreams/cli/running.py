"""`RunningApplication`: an application that answers queries on this machine, found in its state directory."""

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
_PAUSE_S = 0.2
_ANSWER_S = 15.0
_SILENCE_S = 60.0  # of a watch: without news it says so four times as often


class RunningApplication:
    """Asks the instances of one application.

    Parameters
    ----------
    config : Config
        With its id and state directory.
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
        """The rows of a store, page after page; up to `limit`, None for all."""
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
        """The answer of any instance; while tasks move, it is asked again for some seconds.

        Raises
        ------
        StateError
            When there is none.
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
        """The answer of each instance; without those that do not answer."""
        answers = [self._answer(instance, target, {}) for instance in self.instances]
        return [answer for status, answer in answers if status == 200]

    def watch(self, store: str, parameters: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """The events of rows as they change; where an instance goes, another begins again with the rows as they are.

        Raises
        ------
        StateError
            When an instance refuses, or none has answered for some seconds.
        """
        pending = [(self, instance) for instance in self.instances]
        until = monotonic() + _PATIENCE_S
        reason = "the application has ended"
        while monotonic() < until:
            for application, instance in pending:
                try:
                    for event in application._events(instance, store, parameters):
                        yield event
                        until = monotonic() + _PATIENCE_S
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
        """Those of one instance, until it goes; none where it has no answer now."""
        name = ""
        target = f"/v1/stores/{quote(store, safe='')}/watch"
        with self._asked(instance, target, parameters, _SILENCE_S) as answer:
            if answer.status not in (200, 503):
                raise StateError(decode_json(answer.read())["error"])
            for line in answer if answer.status == 200 else ():
                field, _, content = line.decode().rstrip("\n").partition(": ")
                name = content if field == "event" else name
                if field == "data":
                    yield {"event": name, **decode_json(content)}

    def _answer(self, instance: Instance, target: str, parameters: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        try:
            with self._asked(instance, target, parameters, _ANSWER_S) as answer:
                return answer.status, decode_json(answer.read())
        except (OSError, http.client.HTTPException, msgspec.DecodeError) as error:
            return 503, {"error": f"{instance.address} does not answer: {error}"}

    def _asked(
        self, instance: Instance, target: str, parameters: Mapping[str, str], seconds: float
    ) -> AbstractContextManager[http.client.HTTPResponse]:
        from kstreams.runtime.native.stores.metadata import HostInfo

        host = HostInfo.of(instance.address)
        if host is None:
            raise StateError(f"the running application names no address that answers: {instance.address!r}")
        return self._peers.asked(host, target, parameters, seconds)


def rows_of(store: str, key: str | None) -> str:
    """The route of the rows of a store, or of one key.

    Examples
    --------
    >>> rows_of("counts", "a/b c")
    '/v1/stores/counts/keys/a%2Fb%20c'
    """
    place = f"/v1/stores/{quote(store, safe='')}"
    return f"{place}/rows" if key is None else f"{place}/keys/{quote(key, safe='')}"


def settings_of_application(application_id: str | None, app: str | None, state_dir: Path | None) -> Config:
    """The settings by which an application is found: its file's, else those of the environment and `kstreams.toml`."""
    settings = {"application.id": application_id, "state.dir": state_dir}
    named = {key: value for key, value in settings.items() if value is not None}
    if app is not None:
        from kstreams.app import load_app

        return load_app(app, named).config
    return Config.load().replace(named)


def running(config: Config) -> RunningApplication | None:
    """The application of these settings, or the only one in their state directory; None when none answers.

    Raises
    ------
    StateError
        When there are several, and the settings name none.
    """
    from kstreams.server.instances import running_below

    application_id = config.explicit.get("application.id")
    instances = [
        instance
        for instance in running_below(Path(config["state.dir"]))
        if application_id in (None, instance.application_id)
    ]
    ids = sorted({instance.application_id for instance in instances})
    if len(ids) > 1:
        raise StateError(f"several applications answer: name one by --application-id: {', '.join(ids)}")
    return RunningApplication(config.replace({"application.id": ids[0]}), instances) if instances else None


def with_state(config: Config) -> Config:
    """The settings with the id of the application that has left stores in their state directory.

    Raises
    ------
    StateError
        When there is none, or there are several and the settings name none.
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
    """The same; raises StateError when none answers."""
    application = running(config)
    if application is None:
        name = config.explicit.get("application.id")
        which = "no application" if name is None else f"the application {name!r} does not run, or no instance of it"
        raise StateError(
            f"{which} answers in {config['state.dir']}: start it with `kstreams run --serve`, and name its --state-dir"
        )
    return application
