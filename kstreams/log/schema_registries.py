"""`registry_of`: the schema registry that a configuration names, a server or the embedded log."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from kstreams.config import Config
from kstreams.errors import ConfigError
from kstreams.log.homes import home_of
from kstreams.schemas import SchemaRegistry
from kstreams.schemas.retrying import RetryingRegistry, RetryPolicy
from kstreams.serdes.base import SerdeUse

LOCAL = "local:"


class ApplicationRegistry:
    """A callable that returns the registry of a configuration, opened at the first call, for all serdes.

    Requests to an unavailable server are retried for `task.timeout.ms`. In another process, it opens a registry that
    stays open until that process ends.

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
        self._retry_policy = RetryPolicy.of(config)

    def __call__(self) -> SchemaRegistry:
        with self._lock:
            if not self._opened:
                self._opened.append(RetryingRegistry(registry_of(self._config), self._retry_policy))
            return self._opened[0]

    def give_up(self) -> None:
        """End all waits for an unavailable server, because the application stops. Later requests fail at once."""
        self._retry_policy.stopped.set()

    def close(self) -> None:
        """Close the registry if it is open. The next call opens it again."""
        with self._lock:
            while self._opened:
                self._opened.pop().close()

    def __reduce__(self) -> Any:
        """Pickle only plain settings: functions do not concern the registry."""
        return _of_this_process, (tuple(sorted(self._config.plain().explicit.items())),)


@contextmanager
def topic_uses(topic: str, config: Config) -> Iterator[tuple[SerdeUse, SerdeUse]]:
    """Yield the serde contexts of a topic's keys and values, for use outside of an application."""
    with closing(ApplicationRegistry(config)) as registry:
        yield SerdeUse(topic, True, config, registry), SerdeUse(topic, False, config, registry)


@cache
def _of_this_process(settings: tuple[tuple[str, Any], ...]) -> ApplicationRegistry:
    return ApplicationRegistry(Config.of(dict(settings)))


def registry_of(config: Mapping[str, Any], *, create: bool = True) -> SchemaRegistry:
    """Open the schema registry of `schema.registry.url`, which the caller closes.

    Parameters
    ----------
    config : mapping
        The settings of an application: a `Config`.
    create : bool
        True to create an embedded log that does not exist.

    Raises
    ------
    ConfigError
        If `schema.registry.url` is not set or no address, or the client for registry servers is not installed.
    LogError
        If the embedded log cannot be opened, or does not exist and `create` is false.

    Examples
    --------
    >>> import tempfile
    >>> from kstreams.config import Config
    >>> from kstreams.schemas import Schema
    >>> registry = registry_of(Config.of(schema_registry_url="local:", log_dir=tempfile.mkdtemp()))
    >>> registry.register("orders-value", Schema('{"type": "string"}')).version
    1
    >>> registry.close()
    """
    url = config.get("schema.registry.url")
    if not url:
        raise ConfigError(
            "schema.registry.url is not set: give the URL of a schema registry, such as http://localhost:8081, or "
            "`local:`, which keeps schemas in the embedded log and needs no server"
        )
    if url.startswith(LOCAL):
        return _local(config, url.removeprefix(LOCAL), create)
    return _server(config)


def has_registry(config: Mapping[str, Any]) -> bool:
    """Return True if a configuration has a schema registry."""
    return bool(config.get("schema.registry.url"))


def _local(config: Mapping[str, Any], folder: str, create: bool) -> SchemaRegistry:
    from kstreams.log.embedded.home import EmbeddedHome  # imported at the first use
    from kstreams.log.embedded.schemas import LocalRegistry

    home = EmbeddedHome(Path(folder).expanduser() if folder else home_of(config).folder or config["log.dir"])
    home.check(create=create)
    return LocalRegistry(home.open(config))


def _server(config: Mapping[str, Any]) -> SchemaRegistry:
    try:
        from kstreams.schemas.server import ServerRegistry
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("kstreams"):
            raise
        raise ConfigError(
            f"schema.registry.url needs the client for schema registries, and {error.name} is not installed: install "
            "it with `pip install 'kstreams-dsl[registry]'`"
        ) from None
    return ServerRegistry(config)
