"""The home of topics that the command line or the configuration names."""

from __future__ import annotations

from pathlib import Path

from kstreams.errors import LogError
from kstreams.log.api import Log
from kstreams.log.homes import LogFiles, TopicHome, home_at, home_of


def home_named(folder: Path | None, *, create: bool = False) -> TopicHome:
    """The home in the given folder, else that of the environment or of `kstreams.toml`, else the default.

    Raises
    ------
    LogError
        When it does not exist and is not to be created: reading from a mistyped folder must not make an empty log.
    """
    from kstreams.config import Config

    home = home_of(Config.load()) if folder is None else home_at(folder)
    home.check(create=create)
    return home


def open_home(folder: Path | None, *, create: bool = False) -> Log:
    """The same home, opened."""
    home = home_named(folder, create=create)
    return opened(home)


def opened(home: TopicHome) -> Log:
    """A home, opened with the settings of the environment and of `kstreams.toml`: security, among others."""
    from kstreams.config import Config

    return home.open(Config.load())


def files_of(home: TopicHome) -> LogFiles:
    """The maintenance of a home's files; LogError when it keeps none on this machine."""
    if home.files is None:
        raise LogError(f"{home} keeps no files on this machine: `kstreams log` is for the embedded log")
    return home.files
