"""`EmbeddedHome`: a folder as a home of topics (see `kstreams.log.homes`), and the maintenance of its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kstreams.errors import LogError, UnknownTopicError
from kstreams.kernel.clock import Clock
from kstreams.log.embedded.catalogue.journaled_database import holds_log
from kstreams.log.embedded.disk import Disk
from kstreams.log.embedded.log import EmbeddedLog
from kstreams.log.embedded.segments.segment import Damage
from kstreams.log.embedded.segments.topic_settings import full_config
from kstreams.log.embedded.upkeep.consistency import partition_folders, repair
from kstreams.log.embedded.upkeep.dump import dump
from kstreams.log.embedded.upkeep.housekeeping import CleaningResult
from kstreams.log.embedded.upkeep.verify import verify

DURABILITY = "log.durability"


@dataclass(frozen=True, slots=True)
class EmbeddedHome:
    """The embedded log in a folder; see `TopicHome`.

    Examples
    --------
    >>> import tempfile
    >>> home = EmbeddedHome(Path(tempfile.mkdtemp()))
    >>> with home.open() as log:
    ...     log.admin().create_topic("words")
    >>> home.check()
    >>> home.files.num_partitions()
    1
    """

    folder: Path
    settings: tuple[str, ...] = ("log.dir", DURABILITY)

    @property
    def address(self) -> str:
        """`log:` and the folder."""
        return f"log:{self.folder.absolute()}"

    @property
    def files(self) -> EmbeddedFiles:
        """The maintenance of its files."""
        return EmbeddedFiles(self.folder)

    def open(
        self, config: Mapping[str, Any] | None = None, *, clock: Clock | None = None, disk: Disk | None = None
    ) -> EmbeddedLog:
        """Open the log, made if it is not there; tests give a disk that fails."""
        durability = (config or {}).get(DURABILITY, "os")
        return EmbeddedLog(self.folder, clock=clock, durability=durability, disk=disk)

    def check(self, *, create: bool = False) -> None:
        """Raise LogError for a file in its place, or for a folder without a log that is not to be made.

        A mistyped folder must not become an empty log.
        """
        above = next(place for place in (self.folder, *self.folder.absolute().parents) if place.exists())
        if not above.is_dir():
            raise LogError(f"{above} is a file, not a folder: name the folder of the log with --log-dir")
        if not create and not holds_log(self.folder):
            raise LogError(f"there is no log in {self.folder}: create a topic first, or name its folder with --log-dir")

    def topic_defaults(self) -> Mapping[str, str]:
        """The settings of a topic that was given none."""
        return full_config(None)

    def lock_file(self, application_id: str) -> Path:
        """The file that the process that runs an application locks."""
        return self.folder / "applications" / f"{application_id}.lock"

    def __str__(self) -> str:
        return str(self.folder)


@dataclass(frozen=True, slots=True)
class EmbeddedFiles:
    """The files of an embedded log; see `LogFiles`."""

    folder: Path

    def dump(self, topic: str | None = None, *, records: bool = False) -> Iterator[dict[str, Any]]:
        """Every frame as a dictionary; UnknownTopicError for a topic that is not there."""
        if topic is not None and all(source.topic != topic for _, source in partition_folders(self.folder)):
            raise UnknownTopicError(f"there is no topic {topic!r} in {self.folder}")
        return dump(self.folder, records=records, topic=topic)

    def verify(self) -> Sequence[Damage]:
        """All damage; empty when there is none."""
        return verify(self.folder)

    def repair(self) -> list[str]:
        """Repair the catalogue with possible loss; returns what was done, a sentence each."""
        return repair(self.folder)

    def compact(self, topics: Sequence[str] = ()) -> Sequence[CleaningResult]:
        """Compact these topics, or all that are compacted, up to their end."""
        with EmbeddedLog(self.folder) as log, log.admin() as admin:
            compacted = [name for name, each in admin.topics().items() if "compact" in each.config["cleanup.policy"]]
            return [log.compact(name) for name in topics or compacted]

    def clean(self, topics: Sequence[str] = ()) -> Sequence[CleaningResult]:
        """Apply retention and compaction to these topics, or to all."""
        with EmbeddedLog(self.folder) as log:
            cleaned = [log.clean(name) for name in topics] if topics else [log.clean()]
        return [each for part in cleaned for each in part]

    def num_partitions(self) -> int:
        """How many partitions have files."""
        return len(partition_folders(self.folder))
