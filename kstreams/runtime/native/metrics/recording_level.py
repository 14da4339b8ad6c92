"""What is measured at which `metrics.recording.level`."""

from __future__ import annotations

from kstreams.config import Config


def records_debug(config: Config) -> bool:
    """Whether also that is measured which takes time with every record or look-up.

    Examples
    --------
    >>> records_debug(Config.of()), records_debug(Config.of({"metrics.recording.level": "DEBUG"}))
    (False, True)
    """
    return bool(config["metrics.recording.level"] == "DEBUG")
