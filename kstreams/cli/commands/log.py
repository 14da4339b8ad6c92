"""`kstreams log`: shows, checks, repairs and cleans the files of the embedded log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kstreams.cli.home import log_folder, open_embedded
from kstreams.cli.options import AsJson, LogDir
from kstreams.cli.output import print_rows
from kstreams.errors import UnknownTopicError

if TYPE_CHECKING:
    from kstreams.log.embedded.upkeep.housekeeping import CleaningResult

Topics = Annotated[list[str] | None, typer.Argument(metavar="[TOPIC]...", help="Only these topics.")]

log = typer.Typer(no_args_is_help=True, help="Show, check, repair and clean the files of the embedded log.")

SHOWN = ("topic", "partition", "base_offset", "count", "max_timestamp", "compression", "file", "position")


@log.command()
def dump(
    topic: Annotated[str | None, typer.Argument(metavar="[TOPIC]", help="Only this topic.")] = None,
    records: Annotated[bool, typer.Option("--records", help="With --json: also show the records.")] = False,
    as_json: AsJson = False,
    log_dir: LogDir = None,
) -> None:
    """Print every frame (a run of records written at once) with its file and position.

    Example: `kstreams log dump flights --json --records`
    """
    folder = log_folder(log_dir)
    frames = _frames(folder, topic, records and as_json)
    if not as_json:
        frames = ({name: frame[name] for name in SHOWN} for frame in frames)
    print_rows(frames, as_json=as_json, title=str(folder))


@log.command()
def verify(as_json: AsJson = False, log_dir: LogDir = None) -> None:
    """Check segments, indexes, heads and the catalogue, without changing them; exit status 1 if there is damage.

    Example: `kstreams log verify --log-dir /data/log`
    """
    from kstreams.log.embedded.upkeep.consistency import partition_folders
    from kstreams.log.embedded.upkeep.verify import verify as damage_in

    folder = log_folder(log_dir)
    found = damage_in(folder)
    print_rows((damage._asdict() for damage in found), as_json=as_json, title="Damage")
    if found:
        raise typer.Exit(1)
    typer.echo(f"{folder} is sound: {len(partition_folders(folder))} partitions were checked", err=True)


@log.command()
def repair(log_dir: LogDir = None) -> None:
    """Repair a catalogue that is damaged or older than its segments, with possible loss; prints what was lost.

    Damage that can be repaired without loss needs no command: it is repaired when the log is opened.

    Example: `kstreams log repair --log-dir /data/log`
    """
    from kstreams.log.embedded.upkeep.repair import repair as repaired

    folder = log_folder(log_dir)
    for sentence in repaired(folder):
        typer.echo(sentence)
    typer.echo(f"The catalogue of {folder} is sound.", err=True)


@log.command()
def compact(topics: Topics = None, as_json: AsJson = False, log_dir: LogDir = None) -> None:
    """Keep only the last record of each key, up to the current end; without names, in all compacted topics.

    Example: `kstreams log compact airlines`
    """
    with open_embedded(log_dir) as home, home.admin() as admin:
        compacted = [name for name, each in admin.topics().items() if "compact" in each.config["cleanup.policy"]]
        _print_freed([home.compact(name) for name in topics or compacted], as_json)


@log.command()
def clean(topics: Topics = None, as_json: AsJson = False, log_dir: LogDir = None) -> None:
    """Apply `retention.ms`, `retention.bytes` and compaction to complete segments now, and delete settled transactions.

    Applications and producers also do this when they are idle.

    Example: `kstreams log clean flights airlines`
    """
    with open_embedded(log_dir) as home:
        cleaned = [home.clean(name) for name in topics] if topics else [home.clean()]
        _print_freed([each for part in cleaned for each in part], as_json)


def _print_freed(cleaned: list[CleaningResult], as_json: bool) -> None:
    print_rows((each._asdict() for each in cleaned), as_json=as_json, title="Freed")
    freed = sum(each.bytes for each in cleaned)
    typer.echo(f"freed {freed:,} bytes in {len(cleaned)} {'topic' if len(cleaned) == 1 else 'topics'}", err=True)


def _frames(folder: Path, topic: str | None, records: bool) -> Iterator[dict[str, Any]]:
    from kstreams.log.embedded.upkeep.consistency import partition_folders
    from kstreams.log.embedded.upkeep.dump import dump as frames_in

    if topic is not None and all(source.topic != topic for _, source in partition_folders(folder)):
        raise UnknownTopicError(f"there is no topic {topic!r} in {folder}")
    return frames_in(folder, records=records, topic=topic)
