"""`kstreams topics`: create, list, describe, alter, delete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from kstreams.cli.active_groups import require_inactive
from kstreams.cli.commands.groups import committed_by
from kstreams.cli.home import home_named, open_home, opened
from kstreams.cli.options import AsJson, LogDir, NotedKeyType, NotedValueType, Settings, TopicName, settings_of
from kstreams.cli.output import counted, print_rows
from kstreams.cli.registry import open_registry
from kstreams.errors import KStreamsError, LogError, SchemaNotFoundError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Admin, GroupDescription, TopicDescription
from kstreams.log.homes import TopicHome
from kstreams.log.topic_types import TopicTypes, types_of
from kstreams.schemas import RegisteredSchema, SchemaRegistry


def schemas_of(topic: str, home: TopicHome, log_dir: Path | None) -> dict[str, str | None]:
    """Return descriptions of the newest schemas of the subjects `TOPIC-key` and `TOPIC-value`, None without a schema.

    The result is empty if no registry is configured, and the embedded log has no schema for the topic.
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
        return _description(registry.version(subject))
    except SchemaNotFoundError:
        return None


def _description(registered: RegisteredSchema) -> str:
    return f"{registered.subject} version {registered.version} ({registered.schema.type}, id {registered.id})"


topics = typer.Typer(no_args_is_help=True)


@topics.command()
def create(
    name: TopicName,
    partitions: Annotated[int, typer.Option("--partitions", "-p", min=1, help="Number of partitions.")] = 1,
    config: Settings = None,
    key_type: NotedKeyType = None,
    value_type: NotedValueType = None,
    log_dir: LogDir = None,
) -> None:
    """Create a topic.

    The types are the defaults of `produce` and `consume`. Applications set them for the topics that they write.

    Examples: `kstreams topics create airlines --partitions 4 --config cleanup.policy=compact`,
    `kstreams topics create prices --value-type float`
    """
    types = TopicTypes(key_type, value_type).settings()
    with open_home(log_dir, create=True).admin() as admin:
        admin.create_topic(name, partitions, settings_of(config) | types)
    typer.echo(f"created {name} with {counted(partitions, 'partition')}", err=True)


@topics.command("list")
def list_(
    as_json: AsJson = False,
    log_dir: LogDir = None,
) -> None:
    """List the topics with their partitions, records and settings.

    Example: `kstreams topics list --json`
    """
    home = home_named(log_dir)
    defaults = {} if as_json else home.topic_defaults()
    with opened(home).admin() as admin:
        all_topics = sorted(admin.topics().values())
        counts = _records(admin, all_topics)
        rows = (
            {"topic": topic.name, "partitions": topic.partitions, "records": counts[topic.name]}
            | {"config": _changed(topic, defaults)}
            for topic in all_topics
        )
        print_rows(rows, as_json=as_json, title="Topics")


@topics.command()
def describe(name: TopicName, as_json: AsJson = False, log_dir: LogDir = None) -> None:
    """Show a topic's partitions with their first and next offsets, its types and its changed settings.

    With a schema registry, also the newest schemas of its keys and values: subject, version and id.

    Example: `kstreams topics describe flights`
    """
    home = home_named(log_dir)
    with opened(home).admin() as admin:
        topic = admin.describe_topic(name)
        types = types_of(topic.config)
        type_columns = {"key_type": types.key, "value_type": types.value}
        settings = {
            key: value for key, value in _changed(topic, home.topic_defaults()).items() if key not in types.settings()
        }
        schemas = schemas_of(name, home, log_dir)
        rows = (row | type_columns | schemas | {"config": settings} for row in _partitions(admin, [topic]))
        print_rows(rows, as_json=as_json, title=name)


@topics.command()
def alter(
    name: TopicName,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", "-p", min=1, help="New number of partitions, greater than the present one."),
    ] = None,
    config: Settings = None,
    log_dir: LogDir = None,
) -> None:
    """Add partitions to a topic, or change its settings; `--config KEY=` sets a setting to its default.

    Existing records stay in their partitions. New records of a key may go to another partition than its earlier ones:
    applications with state by key must be reset.

    Examples: `kstreams topics alter flights --partitions 8`, `kstreams topics alter flights -c retention.ms=600000`
    """
    if partitions is None and not config:
        raise typer.BadParameter("name what is to change", param_hint="--partitions or --config")
    settings = {key: value or None for key, value in settings_of(config).items()}
    with open_home(log_dir).admin() as admin:
        if settings:
            admin.alter_topic(name, settings)
        if partitions is not None:
            admin.add_partitions(name, partitions)
        count = admin.describe_topic(name).partitions
    typer.echo(f"{name} has {counted(count, 'partition')}", err=True)


@topics.command()
def delete(
    name: TopicName,
    force: Annotated[
        bool, typer.Option("--force", help="Delete the topic though it holds records or is read.")
    ] = False,
    log_dir: LogDir = None,
) -> None:
    """Delete a topic; one with records, or that a running application or an active group reads, requires `--force`.

    Example: `kstreams topics delete flights --force`
    """
    home = home_named(log_dir)
    with opened(home).admin() as admin:
        topic = admin.describe_topic(name)
        if not force:
            _refuse_readers(home, admin, topic)
            _refuse_records(admin, topic)
        admin.delete_topic(name)
    typer.echo(f"deleted {name}", err=True)


def _refuse_readers(home: TopicHome, admin: Admin, topic: TopicDescription) -> None:
    """Raise LogError if an active group reads the topic: by assignment, by commit, or because it is a changelog."""
    groups = admin.describe_groups(admin.groups())
    committed = committed_by(admin, groups, _sources(topic))
    for name, group in groups.items():
        if committed[name] or _reads(group, topic):
            refusal = f"without --force, {topic.name} is not deleted while the group {name} reads it"
            require_inactive(home, group, refusal)


def _reads(group: GroupDescription, topic: TopicDescription) -> bool:
    is_assigned = any(source.topic == topic.name for member in group.members for source in member.partitions)
    is_changelog = topic.name.startswith(f"{group.name}-") and topic.name.endswith("-changelog")
    return is_assigned or is_changelog


def _refuse_records(admin: Admin, topic: TopicDescription) -> None:
    count = _records(admin, [topic])[topic.name]
    if count:
        raise LogError(f"{topic.name} holds {counted(count, 'record')}; delete it with --force to lose them")


def _sources(topic: TopicDescription) -> list[TopicPartition]:
    return [TopicPartition(topic.name, number) for number in range(topic.partitions)]


def _changed(topic: TopicDescription, defaults: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that differ from the defaults."""
    return {key: value for key, value in topic.config.items() if value != defaults.get(key)}


def _partitions(admin: Admin, topics: Sequence[TopicDescription]) -> Iterator[dict[str, Any]]:
    """Yield a row per partition. The offsets of all are read together."""
    members = [source for topic in topics for source in _sources(topic)]
    begin = admin.beginning_offsets(members)
    end = admin.end_offsets(members)
    for member in members:
        yield {
            "topic": member.topic,
            "partition": member.partition,
            "first_offset": begin[member],
            "next_offset": end[member],
            "records": end[member] - begin[member],
        }


def _records(admin: Admin, topics: Sequence[TopicDescription]) -> Counter[str]:
    """Return the number of records in each topic."""
    counts = Counter[str]()
    for row in _partitions(admin, topics):
        counts[row["topic"]] += row["records"]
    return counts
