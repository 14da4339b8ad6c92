"""`registry_of`: the schema registry that a configuration names, a server or the embedded log."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kstreams.errors import ConfigError
from kstreams.log.homes import home_of
from kstreams.schemas.registry import SchemaRegistry

LOCAL = "local:"


def registry_of(config: Mapping[str, Any], *, create: bool = True) -> SchemaRegistry:
    """The schema registry that `schema.registry.url` names; close it in the end.

    Parameters
    ----------
    config : mapping
        The settings of an application: a `Config`.
    create : bool
        Whether an embedded log is made that is not there.

    Raises
    ------
    ConfigError
        When `schema.registry.url` is not set or is no address, or when the client for servers is not installed.
    LogError
        When the embedded log cannot be opened, or is not there and is not to be made.

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
    """Whether a configuration names a schema registry."""
    return bool(config.get("schema.registry.url"))


def _local(config: Mapping[str, Any], folder: str, create: bool) -> SchemaRegistry:
    from kstreams.log.embedded.home import EmbeddedHome  # loaded when it is first asked for
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
            f"the client for schema registries is needed for schema.registry.url, and {error.name} is not installed: "
            "install it with `pip install 'kstreams-dsl[registry]'`"
        ) from None
    return ServerRegistry(config)
