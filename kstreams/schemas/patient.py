"""`PatientRegistry`: a schema registry that is asked again while it is away, as the serdes of applications ask it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Literal, TypeVar

from kstreams.clock import Clock, SystemClock
from kstreams.errors import RegistryUnavailableError
from kstreams.schemas.registry import RegisteredSchema, Schema, SchemaRegistry

logger = logging.getLogger(__name__)

T = TypeVar("T")
_LEAST_WAIT_MS = 10


@dataclass(frozen=True, slots=True)
class Patience:
    """For how long a registry is asked again, and after which times.

    Parameters
    ----------
    timeout_ms : int
        From the first answer that failed; 0: never again.
    first_wait_ms : int
        Before it is asked again for the first time; each wait is twice as long as the one before.
    longest_wait_ms : int
    given_up : Event
        Ends all waits.
    """

    timeout_ms: int
    first_wait_ms: int
    longest_wait_ms: int
    given_up: Event = field(default_factory=Event)

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Patience:
        """That of a configuration.

        Examples
        --------
        >>> from kstreams.config import Config
        >>> Patience.of(Config.of(task_timeout_ms=60_000)).timeout_ms
        60000
        """
        waits = (config[f"schema.registry.retries.{name}"] for name in ("wait.ms", "max.wait.ms"))
        return cls(config["task.timeout.ms"], *(max(_LEAST_WAIT_MS, wait) for wait in waits))


class PatientRegistry(SchemaRegistry):
    """Asks another registry again when that is away. Whoever asks waits: no record is to blame for an outage.

    What the other one knows already it answers at once, away or not.

    Parameters
    ----------
    asked : SchemaRegistry
        Closed with this one.
    patience : Patience
    clock : Clock or None
        The machine's clock unless given.
    """

    def __init__(self, asked: SchemaRegistry, patience: Patience, clock: Clock | None = None) -> None:
        self._asked, self._patience = asked, patience
        self._clock = clock or SystemClock()

    def schema(self, number: int) -> RegisteredSchema:
        return self._waiting(lambda: self._asked.schema(number))

    def schema_of_guid(self, guid: str) -> RegisteredSchema:
        return self._waiting(lambda: self._asked.schema_of_guid(guid))

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        return self._waiting(lambda: self._asked.register(subject, schema, normalize=normalize))

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        return self._waiting(lambda: self._asked.lookup(subject, schema, normalize=normalize))

    def version(self, subject: str, version: int | Literal["latest"] = "latest") -> RegisteredSchema:
        return self._waiting(lambda: self._asked.version(subject, version))

    def subjects(self) -> Sequence[str]:
        return self._waiting(self._asked.subjects)

    def versions(self, subject: str) -> Sequence[int]:
        return self._waiting(lambda: self._asked.versions(subject))

    def incompatibilities(self, subject: str, schema: Schema) -> Sequence[str]:
        return self._waiting(lambda: self._asked.incompatibilities(subject, schema))

    def compatibility(self, subject: str | None = None) -> str:
        return self._waiting(lambda: self._asked.compatibility(subject))

    def set_compatibility(self, rule: str, subject: str | None = None) -> None:
        self._waiting(lambda: self._asked.set_compatibility(rule, subject))

    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> Sequence[int]:
        """Delete at once or not at all: that is for people, who see what became of it."""
        return self._asked.delete(subject, version, permanent=permanent)

    def close(self) -> None:
        self._asked.close()

    def __repr__(self) -> str:
        return f"PatientRegistry({self._asked!r})"

    def _waiting(self, ask: Callable[[], T]) -> T:
        """What the registry answers, as soon as it does; raises its last error when the time is over."""
        clock, patience = self._clock, self._patience
        begun_ms, wait_ms = clock.uptime_ms(), patience.first_wait_ms
        while True:
            try:
                return ask()
            except RegistryUnavailableError as error:
                left_ms = patience.timeout_ms - (clock.uptime_ms() - begun_ms)
                if left_ms <= 0 or patience.given_up.is_set():
                    raise
                logger.warning("waiting for the schema registry, for another %.0f s at most: %s", left_ms / 1000, error)
            clock.sleep(min(wait_ms, left_ms) / 1000, patience.given_up)
            wait_ms = min(2 * wait_ms, patience.longest_wait_ms)
