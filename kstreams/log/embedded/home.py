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
        """The maintenance of the log's files."""
        return EmbeddedFiles(self.folder)

    def open(
        self, config: Mapping[str, Any] | None = None, *, clock: Clock | None = None, disk: Disk | None = None
    ) -> EmbeddedLog:
        """Open the log, which is created if it does not exist; tests use a disk that fails."""
        durability = (config or {}).get(DURABILITY, "os")
        return EmbeddedLog(self.folder, clock=clock, durability=durability, disk=disk)

    def check(self, *, create: bool = False) -> None:
        """Raise LogError if a file has the folder's name, or if the folder has no log and `create` is false.

        So a mistyped folder does not become an empty log.
        """
        existing = next(path for path in (self.folder, *self.folder.absolute().parents) if path.exists())
        if not existing.is_dir():
            raise LogError(f"{existing} is a file, not a folder: name the folder of the log with --log-dir")
        if not create and not holds_log(self.folder):
            raise LogError(f"there is no log in {self.folder}: create a topic first, or name its folder with --log-dir")

    def topic_defaults(self) -> Mapping[str, str]:
        """Return the default settings of topics."""
        return full_config(None)

    def lock_file(self, application_id: str) -> Path:
        """Return the file that the process of an application locks."""
        return self.folder / "applications" / f"{application_id}.lock"

    def __str__(self) -> str:
        return str(self.folder)


@dataclass(frozen=True, slots=True)
class EmbeddedFiles:
    """The files of an embedded log; see `LogFiles`."""

    folder: Path

    def dump(self, topic: str | None = None, *, records: bool = False) -> Iterator[dict[str, object]]:
        """Yield every frame as a dictionary; UnknownTopicError for a topic that does not exist."""
        if topic is not None and all(source.topic != topic for _, source in partition_folders(self.folder)):
            raise UnknownTopicError(f"there is no topic {topic!r} in {self.folder}")
        return dump(self.folder, records=records, topic=topic)

    def verify(self) -> Sequence[Damage]:
        """Return all damage; empty if there is none."""
        return verify(self.folder)

    def repair(self) -> list[str]:
        """Repair the catalogue with possible loss; return one sentence for each change."""
        return repair(self.folder)

    def compact(self, topics: Sequence[str] = ()) -> Sequence[CleaningResult]:
        """Compact these topics up to their end; without names, all topics whose policy is `compact`."""
        with EmbeddedLog(self.folder) as log, log.admin() as admin:
            compacted = [name for name, topic in admin.topics().items() if "compact" in topic.config["cleanup.policy"]]
            return [log.compact(name) for name in topics or compacted]

    def clean(self, topics: Sequence[str] = ()) -> Sequence[CleaningResult]:
        """Apply retention and compaction to these topics; without names, to all topics."""
        with EmbeddedLog(self.folder) as log:
            cleaned = [log.clean(name) for name in topics] if topics else [log.clean()]
        return [result for results in cleaned for result in results]

    def num_partitions(self) -> int:
        """Return the number of partitions that have files."""
        return len(partition_folders(self.folder))
