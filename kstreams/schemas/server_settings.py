"""Settings of confluent-kafka's client for schema registries, from those of an application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kstreams.config import without_passwords
from kstreams.errors import ConfigError

_PREFIX = "schema.registry."
_SAME = (
    "url",
    "basic.auth.user.info",
    "bearer.auth.token",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "proxy",
    "max.retries",
    "retries.wait.ms",
    "retries.max.wait.ms",
)
_OF_TOKENS = ("bearer.auth.logical.cluster", "bearer.auth.identity.pool.id")


def client_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the client, by its names.

    Raises
    ------
    ConfigError
        For a URL that is none, or for a user and a token at once.

    Examples
    --------
    >>> from kstreams.config import Config
    >>> settings = client_settings(Config.of(schema_registry_url="http://localhost:8081"))
    >>> settings["url"], settings["timeout"], settings["max.retries"]
    ('http://localhost:8081', 10.0, 3)
    """
    _check_urls(config)
    settings = _set(config, _SAME)
    settings["timeout"] = config[f"{_PREFIX}http.read.timeout.ms"] / 1000
    if "bearer.auth.token" in settings:
        if "basic.auth.user.info" in settings:
            raise ConfigError(
                "schema.registry.basic.auth.user.info and schema.registry.bearer.auth.token are both set: "
                "a request carries one of them"
            )
        settings.update(_set(config, _OF_TOKENS), **{"bearer.auth.credentials.source": "STATIC_TOKEN"})
    return settings


def latest_ttl_ms(config: Mapping[str, Any]) -> int:
    """Time for which the newest version of a subject is not asked for again; below 0: for ever."""
    return int(config["latest.cache.ttl.sec"]) * 1000


def shown_url(config: Mapping[str, Any]) -> str:
    """The URLs of the server without passwords, for messages."""
    return without_passwords(str(config[f"{_PREFIX}url"]))


def _set(config: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    values = {name: config.get(_PREFIX + name) for name in names}
    return {
        name: str(value) if name.startswith("ssl.") else value for name, value in values.items() if value is not None
    }


def _check_urls(config: Mapping[str, Any]) -> None:
    for url in str(config[f"{_PREFIX}url"]).split(","):
        if not url.strip().startswith(("http://", "https://")):
            raise ConfigError(
                f"schema.registry.url cannot be {without_passwords(url)!r}: give URLs such as http://localhost:8081, "
                "or `local:` for the registry in the embedded log"
            )
