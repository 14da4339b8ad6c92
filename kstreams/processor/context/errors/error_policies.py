"""`ErrorPolicies`: the settings for records that fail or are dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kstreams.config import Config
from kstreams.errors import ConfigError
from kstreams.processor.api.error_handlers import KINDS


@dataclass(frozen=True, slots=True)
class ErrorPolicies:
    """The handlers of an application and its dead-letter topic.

    Parameters
    ----------
    handlers : mapping of str to object
        The setting of each kind of handler.
    dead_letter_topic : str or None
    keeps_dropped : bool
        True if dropped records get a dead letter too.
    handles_global : bool
        True if the processing handler also decides about global tables.

    Examples
    --------
    >>> ErrorPolicies.of(Config.of({"processing.exception.handler": "continue"})).handlers["processing"]
    'continue'
    """

    handlers: Mapping[str, object]
    dead_letter_topic: str | None
    keeps_dropped: bool
    handles_global: bool

    @classmethod
    def of(cls, config: Config) -> ErrorPolicies:
        """Return the policies of a configuration.

        Raises
        ------
        ConfigError
            If dropped records are to get a dead letter, but no topic for them is set.
        """
        topic, keeps_dropped = (config[f"errors.dead.letter.queue.{key}"] for key in ("topic.name", "dropped.records"))
        if keeps_dropped and not topic:
            raise ConfigError(
                "errors.dead.letter.queue.dropped.records needs a topic: name it in errors.dead.letter.queue.topic.name"
            )
        handlers = {kind: config[f"{kind}.exception.handler"] for kind in KINDS}
        return cls(handlers, topic, keeps_dropped, config["processing.exception.handler.global.enabled"])

    def of_global_tables(self) -> ErrorPolicies:
        """Return the policies of tasks that fill global tables, which write no topics."""
        handlers = dict(self.handlers) if self.handles_global else {**self.handlers, "processing": "fail"}
        return replace(self, handlers=handlers, dead_letter_topic=None, keeps_dropped=False)
