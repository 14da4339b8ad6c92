"""The schema registry that the command line or the configuration names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from kstreams.log.homes import TopicHome
from kstreams.schemas import SchemaRegistry
from kstreams.serdes.base import SerdeUse

RegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="URL",
        help="The schema registry: the URL of a server, or `local:`, the one in the embedded log; default: "
        "`schema.registry.url` of the configuration, else `local:`.",
    ),
]


@contextmanager
def open_registry(url: str | None, folder: Path | None, *, create: bool = False) -> Iterator[SchemaRegistry]:
    """Open the registry of a URL or of a log's folder, or else the registry of the configuration or of its log.

    Parameters
    ----------
    url : str or None
    folder : Path or None
        The folder of an embedded log, for `local:`.
    create : bool
        True to create a missing embedded log. Otherwise it is a LogError, so that a mistyped folder does not become an
        empty log.
    """
    from kstreams.config import Config
    from kstreams.log.schema_registries import LOCAL, has_registry, registry_of

    if folder is not None and url in (None, LOCAL):
        url = f"{LOCAL}{folder.absolute()}"
    config = Config.load()
    if url is not None or not has_registry(config):
        config = config.replace({"schema.registry.url": url or LOCAL})
    registry = registry_of(config, create=create)
    try:
        yield registry
    finally:
        registry.close()


@contextmanager
def uses_of(topic: str, home: TopicHome, folder: Path | None) -> Iterator[tuple[SerdeUse | None, SerdeUse | None]]:
    """Return the serde uses of a topic's keys and values, with the registry that `open_registry` returns.

    The registry is opened when the first schema is needed. The uses are None if no registry is configured, and the home
    of the topic is no embedded log.
    """
    from kstreams.config import Config
    from kstreams.log.schema_registries import LOCAL, has_registry, topic_uses

    config = Config.load()
    url = config.get("schema.registry.url") or LOCAL
    log = folder or home.folder
    if not has_registry(config) and log is None:
        yield None, None
        return
    if url == LOCAL and log is not None:
        url = f"{LOCAL}{log.absolute()}"
    config = config.replace(
        {"schema.registry.url": url, "task.timeout.ms": 0}
    )  # the user at the terminal may run the command again
    with topic_uses(topic, config) as uses:
        yield uses
