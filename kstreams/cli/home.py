"""The home of topics that the command line or the configuration names."""

from __future__ import annotations

from pathlib import Path

from kstreams.errors import LogError
from kstreams.log.api import Log
from kstreams.log.homes import LogFiles, TopicHome, home_at, home_of


def home_named(folder: Path | None, *, create: bool = False) -> TopicHome:
    """Return the home in a folder, or the home of the environment, of `kstreams.toml` or the default if it is None.

    Raises
    ------
    LogError
        If it does not exist, unless `create`: reading from a mistyped folder must not create an empty log.
    """
    from kstreams.config import Config

    home = home_of(Config.load()) if folder is None else home_at(folder)
    home.check(create=create)
    return home


def open_home(folder: Path | None, *, create: bool = False) -> Log:
    """Open the home that `home_named` returns."""
    home = home_named(folder, create=create)
    return opened(home)


def opened(home: TopicHome) -> Log:
    """Open a home with the settings of the environment and of `kstreams.toml`, such as those for security."""
    from kstreams.config import Config

    return home.open(Config.load())


def files_of(home: TopicHome) -> LogFiles:
    """Return the maintenance of a home's files. Raises LogError if it has none on this machine."""
    if home.files is None:
        raise LogError(f"{home} keeps no files on this machine: `kstreams log` is for the embedded log")
    return home.files
