"""The schemas of a topic's keys and values, as the schema registry of the configuration has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from kstreams.cli.registry import open_registry
from kstreams.errors import KStreamsError, SchemaNotFoundError
from kstreams.log.homes import TopicHome
from kstreams.schemas import RegisteredSchema, SchemaRegistry


def schemas_of(topic: str, home: TopicHome, log_dir: Path | None) -> dict[str, Any]:
    """The newest schemas of the subjects `TOPIC-key` and `TOPIC-value`, in words, None where there is none.

    Empty without a registry: none is configured, and the embedded log has no schema for the topic.
    """
    from kstreams.config import Config
    from kstreams.log.schema_registries import has_registry

    config = Config.load()
    is_configured = has_registry(config)
    if not is_configured and home.folder is None:
        return {}
    try:
        with open_registry(config.get("schema.registry.url"), log_dir) as registry:
            newest = {f"{part}_schema": _newest(registry, f"{topic}-{part}") for part in ("key", "value")}
    except KStreamsError as error:
        typer.echo(f"the schemas of {topic} cannot be shown: {error}", err=True)
        return {"key_schema": None, "value_schema": None} if is_configured else {}
    return newest if is_configured or any(newest.values()) else {}


def _newest(registry: SchemaRegistry, subject: str) -> str | None:
    try:
        return _named(registry.version(subject))
    except SchemaNotFoundError:
        return None


def _named(registered: RegisteredSchema) -> str:
    return f"{registered.subject} version {registered.version} ({registered.schema.type}, id {registered.id})"
