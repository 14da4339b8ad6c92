"""`Application`: the constants of an application that all its tasks share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kstreams.config import Config
from kstreams.kernel.clock import Clock
from kstreams.processor.context.settings import TaskSettings


@dataclass(frozen=True, slots=True, eq=False)
class Application:
    """The values of an application that its tasks read.

    Parameters
    ----------
    id : str
        `application.id`, which processors may ask for.
    settings : TaskSettings
    clock : Clock
        Wall-clock time for punctuators and processors.
    topic_names : mapping of str to str
        Real names of topics whose name in the topology differs: internal ones lack the application's id there.

    Examples
    --------
    >>> from kstreams.kernel.clock import ManualClock
    >>> Application.of(Config.of({"application.id": "flights"}), ManualClock()).id
    'flights'
    """

    id: str
    settings: TaskSettings
    clock: Clock
    topic_names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, config: Config, clock: Clock, topic_names: Mapping[str, str] | None = None) -> Application:
        """Return the constants of a configuration."""
        return cls(config.application_id, TaskSettings.of(config), clock, topic_names or {})
