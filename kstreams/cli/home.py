"""Opens the home of topics that the command line or the configuration names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kstreams.errors import LogError
from kstreams.log.api import Log

if TYPE_CHECKING:
    from kstreams.log import EmbeddedLog

CATALOGUE = "catalogue.sqlite"


def log_folder(folder: Path | None, *, create: bool = False) -> Path:
    """The given folder, else `log.dir` of the environment or of `kstreams.toml`, else the default.

    Raises
    ------
    LogError
        When it does not exist and is not to be created: reading from a mistyped folder must not make an empty log.
    """
    from kstreams.config import Config

    found = folder or Path(Config.load()["log.dir"])
    above = next(place for place in (found, *found.absolute().parents) if place.exists())
    if not above.is_dir():
        raise LogError(f"{above} is a file, not a folder: name the folder of the log with --log-dir")
    if not create and not (found / CATALOGUE).exists():
        raise LogError(f"there is no log in {found}: create a topic first, or name its folder with --log-dir")
    return found


def open_home(folder: Path | None, *, create: bool = False) -> Log:
    """The home of topics in that folder."""
    return open_embedded(folder, create=create)


def open_embedded(folder: Path | None, *, create: bool = False) -> EmbeddedLog:
    """The embedded log in that folder."""
    from kstreams.log import open_log

    return open_log(log_folder(folder, create=create))
