"""`kstreams log`: shows, checks, repairs and cleans the files of the embedded log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from kstreams.cli.home import files_of, home_named
from kstreams.cli.options import AsJson, LogDir
from kstreams.cli.output import print_rows
from kstreams.log.homes import CleaningFigures

Topics = Annotated[list[str] | None, typer.Argument(metavar="[TOPIC]...", help="Only these topics.")]

log = typer.Typer(no_args_is_help=True)

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
    home = home_named(log_dir)
    frames = files_of(home).dump(topic, records=records and as_json)
    if not as_json:
        frames = ({name: frame[name] for name in SHOWN} for frame in frames)
    print_rows(frames, as_json=as_json, title=str(home))


@log.command()
def verify(as_json: AsJson = False, log_dir: LogDir = None) -> None:
    """Check segments, indexes, heads and the catalogue, without changing them; exit status 1 if there is damage.

    Example: `kstreams log verify --log-dir /data/log`
    """
    home = home_named(log_dir)
    files = files_of(home)
    damages = files.verify()
    print_rows((damage._asdict() for damage in damages), as_json=as_json, title="Damage")
    if damages:
        raise typer.Exit(1)
    typer.echo(f"{home} is sound: {files.num_partitions()} partitions were checked", err=True)


@log.command()
def repair(log_dir: LogDir = None) -> None:
    """Repair a catalogue that is damaged or older than its segments, with possible loss; prints what was lost.

    Damage that can be repaired without loss needs no command: it is repaired when the log is opened.

    Example: `kstreams log repair --log-dir /data/log`
    """
    home = home_named(log_dir)
    for sentence in files_of(home).repair():
        typer.echo(sentence)
    typer.echo(f"The catalogue of {home} is sound.", err=True)


@log.command()
def compact(topics: Topics = None, as_json: AsJson = False, log_dir: LogDir = None) -> None:
    """Keep only the last record of each key, up to the current end; without names, in all compacted topics.

    Example: `kstreams log compact airlines`
    """
    _print_freed(files_of(home_named(log_dir)).compact(topics or ()), as_json)


@log.command()
def clean(topics: Topics = None, as_json: AsJson = False, log_dir: LogDir = None) -> None:
    """Apply `retention.ms`, `retention.bytes` and compaction to complete segments now, and delete settled transactions.

    Applications and producers also do this when they are idle.

    Example: `kstreams log clean flights airlines`
    """
    _print_freed(files_of(home_named(log_dir)).clean(topics or ()), as_json)


def _print_freed(cleaned: Sequence[CleaningFigures], as_json: bool) -> None:
    print_rows((row._asdict() for row in cleaned), as_json=as_json, title="Freed")
    freed = sum(row.bytes for row in cleaned)
    typer.echo(f"freed {freed:,} bytes in {len(cleaned)} {'topic' if len(cleaned) == 1 else 'topics'}", err=True)
