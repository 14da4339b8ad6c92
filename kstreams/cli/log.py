"""`kstreams log`: looks into the files of the embedded log, and checks them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from kstreams.cli.home import log_folder
from kstreams.cli.options import AsJson, LogDir
from kstreams.cli.output import print_rows
from kstreams.errors import UnknownTopicError

log = typer.Typer(no_args_is_help=True, help="Look into the files of the embedded log, and check them.")

SHOWN = ("topic", "partition", "base_offset", "count", "max_timestamp", "compression", "file", "position")


@log.command()
def dump(
    topic: Annotated[str | None, typer.Argument(metavar="[TOPIC]", help="Only this topic.")] = None,
    records: Annotated[bool, typer.Option("--records", help="With --json: show the records inside too.")] = False,
    as_json: AsJson = False,
    log_dir: LogDir = None,
) -> None:
    """Print every frame (a run of records written at once) with the file and position where it stands.

    Example: `kstreams log dump flights --json --records`
    """
    folder = log_folder(log_dir)
    frames = _frames(folder, topic, records and as_json)
    if not as_json:
        frames = ({name: frame[name] for name in SHOWN} for frame in frames)
    print_rows(frames, as_json=as_json, title=str(folder))


@log.command()
def verify(as_json: AsJson = False, log_dir: LogDir = None) -> None:
    """Check segments, indexes, heads and the catalogue, without changing anything; exit status 1 for damage.

    Example: `kstreams log verify --log-dir /data/log`
    """
    from kstreams.log.embedded.evidence import partition_folders
    from kstreams.log.embedded.verify import verify as damage_in

    folder = log_folder(log_dir)
    found = damage_in(folder)
    print_rows((damage._asdict() for damage in found), as_json=as_json, title="Damage")
    if found:
        raise typer.Exit(1)
    typer.echo(f"{folder} is sound: {len(partition_folders(folder))} partitions were checked", err=True)


@log.command()
def repair(log_dir: LogDir = None) -> None:
    """Go on with what is left of a catalogue that is damaged or older than its segments; says what that is.

    Damage that can be mended without loss needs no command: it is mended when the log is opened.

    Example: `kstreams log repair --log-dir /data/log`
    """
    from kstreams.log.embedded.repair import repair as repaired

    folder = log_folder(log_dir)
    for sentence in repaired(folder):
        typer.echo(sentence)
    typer.echo(f"The catalogue of {folder} is sound.", err=True)


def _frames(folder: Path, topic: str | None, records: bool) -> Iterator[dict[str, Any]]:
    from kstreams.log.embedded.dump import dump as frames_in
    from kstreams.log.embedded.evidence import partition_folders

    if topic is not None and all(source.topic != topic for _, source in partition_folders(folder)):
        raise UnknownTopicError(f"there is no topic {topic!r} in {folder}")
    return frames_in(folder, records=records, topic=topic)
