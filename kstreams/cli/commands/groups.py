"""`kstreams groups`: shows, resets and deletes consumer groups."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Annotated, Any, NamedTuple

import typer

from kstreams.cli.active_groups import require_inactive
from kstreams.cli.home import home_named, open_home, opened
from kstreams.cli.options import AsJson, LogDir
from kstreams.cli.output import print_rows
from kstreams.errors import ConfigError, LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import SystemClock
from kstreams.kernel.durations import to_ms
from kstreams.kernel.offset_reset import offset_reset_of
from kstreams.log.api import Admin, GroupDescription, Log, OffsetAndMetadata
from kstreams.log.naming import did_you_mean
from kstreams.log.readable_ends import readable_ends
from kstreams.runtime.native.group.assignment_topic import assignment_topic

_CONCURRENT_REQUESTS = 16


def committed_by(
    admin: Admin, groups: Collection[str], partitions: Collection[TopicPartition]
) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
    """Return the committed offsets of the partitions, by group."""
    with ThreadPoolExecutor(_CONCURRENT_REQUESTS) as pool:
        offsets = pool.map(lambda group: admin.committed(group, partitions), groups)
        return dict(zip(groups, offsets, strict=True))


groups = typer.Typer(no_args_is_help=True)
Committed = Mapping[TopicPartition, OffsetAndMetadata]
GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="Name of the group; an application's id is one.")]


class Bounds(NamedTuple):
    """The first offset of a partition, the offset after its last readable record, and its end offset."""

    begin: int
    readable_end: int
    end: int


@groups.command("list")
def list_(as_json: AsJson = False, log_dir: LogDir = None) -> None:
    """List the groups with their states, members and lags.

    Example: `kstreams groups list --json`
    """
    with opened(home_named(log_dir)) as log, log.admin() as admin:
        print_rows(_summaries(log, admin), as_json=as_json, title="Groups")


@groups.command()
def describe(name: GroupName, as_json: AsJson = False, log_dir: LogDir = None) -> None:
    """Show a group's state, generation and members with the partitions that they read.

    Example: `kstreams groups describe flight-counts`
    """
    with open_home(log_dir).admin() as admin:
        group = _known(admin, name)
        print_rows(_members(group), as_json=as_json, title=name)


@groups.command()
def lag(name: GroupName, as_json: AsJson = False, log_dir: LogDir = None) -> None:
    """Show the lag of a group, partition by partition: 0 if the group has read every readable record.

    Example: `kstreams groups lag flight-counts`
    """
    with opened(home_named(log_dir)) as log, log.admin() as admin:
        group = _known(admin, name)
        committed = admin.committed(name, _all_partitions(admin))
        bounds = _bounds(log, admin, {name: group}, {name: committed})
        print_rows(_lags(group, committed, bounds), as_json=as_json, title=name)


@groups.command()
def reset(
    name: GroupName,
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="WHERE", help="`earliest`, `latest`, an offset, or a time back such as `by_duration:PT1H`."
        ),
    ],
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", metavar="TOPIC", help="Only this topic; may be repeated."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done.")] = False,
    as_json: AsJson = False,
    log_dir: LogDir = None,
) -> None:
    """Set the committed offsets of a stopped group, in all partitions at once; refused while it has members.

    The state of an application is not changed: to process all input again, use `kstreams reset app.py`.

    Examples: `kstreams groups reset readers --to earliest`,
    `kstreams groups reset readers --to by_duration:PT1H --topic flights --dry-run`
    """
    home = home_named(log_dir)
    with opened(home) as log, log.admin() as admin:
        require_inactive(home, _known(admin, name), f"the group {name} cannot be reset")
        before = admin.committed(name, _all_partitions(admin))
        if topic is not None:
            before = {source: at for source, at in before.items() if source.topic in topic}
        if not before:
            raise LogError(f"the group {name} has committed nothing" + (f" for {', '.join(topic)}" if topic else ""))
        offsets = {source: OffsetAndMetadata(at) for source, at in _offsets(log, admin, before, to).items()}
        if not dry_run:
            admin.commit(name, offsets)
    print_rows(_moves(before, offsets), as_json=as_json, title=name)


@groups.command()
def delete(name: GroupName, log_dir: LogDir = None) -> None:
    """Delete a stopped group with its offsets; refused while it has members.

    Example: `kstreams groups delete readers`
    """
    home = home_named(log_dir)
    with opened(home).admin() as admin:
        require_inactive(home, _known(admin, name), f"the group {name} cannot be deleted")
        admin.delete_group(name)
    typer.echo(f"deleted {name}", err=True)


def _known(admin: Admin, name: str) -> GroupDescription:
    all_groups = admin.groups()
    if name not in all_groups:
        raise LogError(f"there is no group {name!r}.{did_you_mean(name, all_groups)}")
    return admin.describe_group(name)


def _summaries(log: Log, admin: Admin) -> Iterator[dict[str, object]]:
    """Yield a row per group. The end offsets are read once for all groups."""
    groups = admin.describe_groups(admin.groups())
    committed = committed_by(admin, groups, _all_partitions(admin))
    bounds = _bounds(log, admin, groups, committed)
    for name, group in groups.items():
        total_lag = sum(row["lag"] for row in _lags(group, committed[name], bounds))
        yield {"group": name, "state": group.state, "members": len(group.members), "lag": total_lag}


def _members(group: GroupDescription) -> Iterator[dict[str, object]]:
    """Yield a row per member, or one row without a member if the group has none."""
    common = {"group": group.name, "state": group.state, "generation": group.generation, "strategy": group.strategy}
    for member in group.members:
        yield common | {
            "member": member.id,
            "instance": member.instance,
            "partitions": [str(source) for source in member.partitions],
        }
    if not group.members:
        yield common | {"member": None, "instance": None, "partitions": []}


def _all_partitions(admin: Admin) -> list[TopicPartition]:
    topics = admin.topics().values()
    return [TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)]


def _readers(group: GroupDescription) -> dict[TopicPartition, str]:
    return {source: member.id for member in group.members for source in member.partitions}


def _bounds(
    log: Log, admin: Admin, groups: Mapping[str, GroupDescription], committed: Mapping[str, Committed]
) -> dict[TopicPartition, Bounds]:
    """Return the bounds of the partitions that the groups have committed or read."""
    sources = {source for name, group in groups.items() for source in committed[name].keys() | _readers(group).keys()}
    begins = admin.beginning_offsets(sources)
    ends = admin.end_offsets(sources)
    positions = {source: [of[source].offset for of in committed.values() if source in of] for source in sources}
    first = {source: min(at, default=begins[source]) for source, at in positions.items()}
    readable = readable_ends(log, first, ends)
    return {source: Bounds(begins[source], readable[source], ends[source]) for source in sources}


def _lags(
    group: GroupDescription,
    committed: Committed,
    bounds: Mapping[TopicPartition, Bounds],
) -> Iterator[dict[str, Any]]:
    """Yield a row per partition that is committed or read, except the assignment topic, which all processes read."""
    readers = _readers(group)
    assignments = assignment_topic(group.name)
    for source in sorted(readers.keys() | committed.keys()):
        if source.topic == assignments:
            continue
        begin, readable_end, end = bounds[source]
        at = committed[source].offset if source in committed else None
        yield {
            "topic": source.topic,
            "partition": source.partition,
            "committed": at,
            "end": end,
            "lag": max(0, readable_end - (begin if at is None else at)),
            "member": readers.get(source),
        }


def _offsets(log: Log, admin: Admin, sources: Collection[TopicPartition], to: str) -> dict[TopicPartition, int]:
    begins = admin.beginning_offsets(sources)
    ends = admin.end_offsets(sources)
    if to.isdecimal():
        return {source: min(max(int(to), begins[source]), ends[source]) for source in sources}
    where = _reset(to)
    if not isinstance(where, timedelta):
        return begins if where == "earliest" else ends
    since_ms = SystemClock().wall_ms() - to_ms(where)
    with log.consumer() as consumer:
        consumer.assign(sources)
        for source in sources:
            consumer.seek_to_time(source, since_ms)
        return {source: consumer.position(source) for source in sources}


def _reset(to: str) -> str | timedelta:
    try:
        reset = offset_reset_of(to)
    except ConfigError:
        reset = None
    if reset is None or reset == "none":
        raise typer.BadParameter(
            f"{to!r} is none of earliest, latest, an offset, or by_duration:PT1H", param_hint="--to"
        )
    return reset


def _moves(
    before: Mapping[TopicPartition, OffsetAndMetadata], after: Mapping[TopicPartition, OffsetAndMetadata]
) -> Iterator[dict[str, object]]:
    for source in sorted(before):
        row = {"topic": source.topic, "partition": source.partition}
        yield row | {"before": before[source].offset, "after": after[source].offset}
