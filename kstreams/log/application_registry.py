"""`ApplicationRegistry`: the schema registry that an application names, opened when it is first asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from typing import Any

from kstreams.config import Config
from kstreams.log.schema_registries import registry_of
from kstreams.schemas import SchemaRegistry
from kstreams.schemas.patient import Patience, PatientRegistry
from kstreams.serdes.base import SerdeUse


class ApplicationRegistry:
    """Called, it gives the registry of a configuration: the same one to all serdes of an application.

    Requests to a server that is away are retried for `task.timeout.ms`. Sent to another process, it opens one
    there, which stays open until that process ends.

    Parameters
    ----------
    config : Config

    Examples
    --------
    >>> ApplicationRegistry(Config.of({})).close()
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._opened: list[SchemaRegistry] = []
        self._patience = Patience.of(config)

    def __call__(self) -> SchemaRegistry:
        with self._lock:
            if not self._opened:
                self._opened.append(PatientRegistry(registry_of(self._config), self._patience))
            return self._opened[0]

    def give_up(self) -> None:
        """End all waits for a server that is away, because the application stops; later requests do not wait."""
        self._patience.stopped.set()

    def close(self) -> None:
        """Close it, if it was opened; asked again, it is opened again."""
        with self._lock:
            while self._opened:
                self._opened.pop().close()

    def __reduce__(self) -> Any:
        """Settings that are functions say nothing about a registry, and need not travel."""
        return _of_this_process, (tuple(sorted(self._config.plain().explicit.items())),)


@contextmanager
def topic_uses(topic: str, config: Config) -> Iterator[tuple[SerdeUse, SerdeUse]]:
    """What the keys and the values of a topic are read and written with, outside of an application."""
    with closing(ApplicationRegistry(config)) as registry:
        yield SerdeUse(topic, True, config, registry), SerdeUse(topic, False, config, registry)


@cache
def _of_this_process(settings: tuple[tuple[str, Any], ...]) -> ApplicationRegistry:
    return ApplicationRegistry(Config.of(dict(settings)))
