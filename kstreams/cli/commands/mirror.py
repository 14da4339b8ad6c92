"""`kstreams mirror`: copies topics from one home to another."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kstreams.cli import lines
from kstreams.cli.output import INTERRUPTED
from kstreams.errors import ConfigError

if TYPE_CHECKING:
    from kstreams.mirror import Mirror

_ANY = (".*",)


def mirror(
    source: Annotated[
        str, typer.Option("--from", metavar="HOME", help="The source: `kafka:HOST:PORT`, `log:FOLDER`, or a folder.")
    ],
    target: Annotated[str, typer.Option("--to", metavar="HOME", help="The target, in the same form.")],
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "--topics", metavar="PATTERN", help="Names of topics or regular expressions; default: all topics."
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", metavar="PATTERN", help="Topics that are not copied.")
    ] = None,
    groups: Annotated[
        list[str] | None,
        typer.Option("--groups", metavar="PATTERN", help="Groups whose offsets are translated; default: all groups."),
    ] = None,
    source_alias: Annotated[
        str, typer.Option("--source-alias", metavar="NAME", help="The first part of the names of copies.")
    ] = "source",
    target_alias: Annotated[
        str,
        typer.Option("--target-alias", metavar="NAME", help="Topics with this name in their own are not copied back."),
    ] = "target",
    separator: Annotated[str, typer.Option(metavar="TEXT", help="The text between alias and name.")] = ".",
    identity: Annotated[
        bool, typer.Option("--identity", help="Give copies the names of their topics; needs both aliases.")
    ] = False,
    tasks: Annotated[
        int, typer.Option(min=1, help="Tasks that several processes share; fixed by the first start.")
    ] = 1,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Copy all records that the topics hold now, and stop.")
    ] = False,
    commit_interval: Annotated[
        int, typer.Option("--commit-interval", metavar="MS", min=1, help="Longest duration of a transaction.")
    ] = 500,
    refresh_interval: Annotated[
        int,
        typer.Option(
            "--refresh-interval",
            metavar="MS",
            min=1,
            help="Interval at which new topics, partitions, settings and group offsets are noticed.",
        ),
    ] = 5_000,
    source_config: Annotated[
        Path | None,
        typer.Option("--from-config", metavar="FILE", help="Settings of the source; default: `kstreams.toml`."),
    ] = None,
    target_config: Annotated[
        Path | None,
        typer.Option("--to-config", metavar="FILE", help="Settings of the target; default: `kstreams.toml`."),
    ] = None,
    metrics: Annotated[
        int | None,
        typer.Option("--metrics", metavar="PORT", min=1, max=65535, help="Serve metrics for Prometheus on 127.0.0.1."),
    ] = None,
) -> None:
    """Copy topics with their settings and group offsets from one home to another, exactly once, until interrupted.

    Start the command twice, and the second process takes over when the first one ends. With `--tasks 4`, up to four
    processes share the partitions.

    Examples: `kstreams mirror --from kafka:east:9092 --to kafka:west:9092 --source-alias east --target-alias west`,
    `kstreams mirror --from kafka:broker:9092 --to copy --topics 'orders,payments.*' --until-end`
    """
    from kstreams.cli.progress import ProgressLine
    from kstreams.log.homes import home_at
    from kstreams.mirror import Mirror, MirrorSettings, NameFilter, ReplicationPolicy
    from kstreams.os.garbage_collection import infrequent_garbage_collection
    from kstreams.os.stop_signals import stop_signals

    _check_aliases(identity, source_alias, target_alias)
    defaults = MirrorSettings()
    settings = MirrorSettings(
        ReplicationPolicy(source_alias, target_alias, separator, identity),
        NameFilter(tuple(topics or _ANY), (*defaults.topics.exclude, *(exclude or ()))),
        NameFilter(tuple(groups or _ANY), defaults.groups.exclude),
        tasks=tasks,
        commit_interval_ms=commit_interval,
        refresh_interval_ms=refresh_interval,
        sync_interval_ms=refresh_interval,
    )
    source_home = home_at(source)
    target_home = home_at(target)
    source_home.check()
    target_home.check(create=True)
    copier = Mirror(
        source_home,
        target_home,
        settings,
        source_config=_settings_of(source_config),
        target_config=_settings_of(target_config),
    )
    if metrics is not None:
        _serve_metrics(copier, metrics)
    lines.tell(
        f"{settings.policy.source} to {settings.policy.target}: topics of {source_home} are copied to {target_home}"
    )
    line = ProgressLine(lines.stream())
    with stop_signals() as stop, infrequent_garbage_collection():
        copier.run(until_end=until_end, stop=stop, on_progress=line.show)
    line.finish()
    if stop.signal is signal.SIGINT:
        raise typer.Exit(INTERRUPTED)


def _check_aliases(identity: bool, source_alias: str, target_alias: str) -> None:
    """Raise BadParameter for copies by the same name whose origins could not be told apart."""
    if identity and (source_alias, target_alias) == ("source", "target"):
        raise typer.BadParameter(
            "copies with the names of their topics need --source-alias and --target-alias, by which a mirror in the "
            "opposite direction is recognized",
            param_hint="--identity",
        )


def _settings_of(file: Path | None) -> Mapping[str, object]:
    """Return the settings of one home: those of a file alone, or those of the environment and `kstreams.toml`."""
    from kstreams.config import Config

    if file is None:
        return Config.load()
    if not file.exists():
        raise typer.BadParameter(f"there is no file {file}", param_hint="--from-config or --to-config")
    return Config.load(environment={}, file=file)


def _serve_metrics(copier: Mirror, port: int) -> None:
    """Serve the metrics of a mirror over HTTP, in a thread."""
    try:
        from prometheus_client import CollectorRegistry, start_http_server

        from kstreams.metrics.prometheus import PrometheusCollector
    except ModuleNotFoundError:
        raise ConfigError("--metrics needs prometheus-client: pip install 'kstreams-dsl[metrics]'") from None
    registry = CollectorRegistry()
    registry.register(PrometheusCollector(copier))
    start_http_server(port, "127.0.0.1", registry)
    lines.tell(f"metrics at http://127.0.0.1:{port}/metrics")
