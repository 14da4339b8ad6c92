"""`PatientRegistry`: the schema registry of an application, which retries with backoff while a server is away."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Literal, TypeVar

from kstreams.clock import Clock, SystemClock
from kstreams.errors import RegistryUnavailableError
from kstreams.schemas.registry import RegisteredSchema, Schema, SchemaRegistry

logger = logging.getLogger(__name__)

T = TypeVar("T")
_LEAST_WAIT_MS = 10
_waits = ContextVar("_waits", default=True)


@contextmanager
def without_waiting() -> Iterator[None]:
    """Let requests of this thread fail at once while a registry is away: the caller waits in its own way."""
    token = _waits.set(False)
    try:
        yield
    finally:
        _waits.reset(token)


@dataclass(frozen=True, slots=True)
class Patience:
    """The timeout and the backoff of requests to a registry that is away.

    Parameters
    ----------
    timeout_ms : int
        Counted from the first request that failed; 0: no retry.
    first_wait_ms : int
        Before the first retry; every further wait is twice as long.
    longest_wait_ms : int
    stopped : Event
        Ends all waits.
    """

    timeout_ms: int
    first_wait_ms: int
    longest_wait_ms: int
    stopped: Event = field(default_factory=Event)

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
    """A schema registry that waits while the registry behind it is away: no record is to blame for an outage.

    Schemas that the registry behind it has cached are returned at once.

    Parameters
    ----------
    registry : SchemaRegistry
        Closed with this one.
    patience : Patience
    clock : Clock or None
        The machine's clock unless given.
    """

    def __init__(self, registry: SchemaRegistry, patience: Patience, clock: Clock | None = None) -> None:
        self._registry = registry
        self._patience = patience
        self._clock = clock or SystemClock()
        self._backoff_ms = patience.first_wait_ms
        self._retry_at_ms = 0
        self._failure = ""

    def schema(self, number: int) -> RegisteredSchema:
        return self._waiting(lambda: self._registry.schema(number))

    def schema_of_guid(self, guid: str) -> RegisteredSchema:
        return self._waiting(lambda: self._registry.schema_of_guid(guid))

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        return self._waiting(lambda: self._registry.register(subject, schema, normalize=normalize))

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        return self._waiting(lambda: self._registry.lookup(subject, schema, normalize=normalize))

    def version(self, subject: str, version: int | Literal["latest"] = "latest") -> RegisteredSchema:
        return self._waiting(lambda: self._registry.version(subject, version))

    def subjects(self) -> Sequence[str]:
        return self._waiting(self._registry.subjects)

    def versions(self, subject: str) -> Sequence[int]:
        return self._waiting(lambda: self._registry.versions(subject))

    def incompatibilities(self, subject: str, schema: Schema) -> Sequence[str]:
        return self._waiting(lambda: self._registry.incompatibilities(subject, schema))

    def compatibility(self, subject: str | None = None) -> str:
        return self._waiting(lambda: self._registry.compatibility(subject))

    def set_compatibility(self, rule: str, subject: str | None = None) -> None:
        self._waiting(lambda: self._registry.set_compatibility(rule, subject))

    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> Sequence[int]:
        """Delete without a retry: a person asks for it, and sees the error."""
        return self._registry.delete(subject, version, permanent=permanent)

    def close(self) -> None:
        self._registry.close()

    def __repr__(self) -> str:
        return f"PatientRegistry({self._registry!r})"

    def _waiting(self, ask: Callable[[], T]) -> T:
        """Return the answer as soon as there is one; raise the last error after the timeout."""
        if not _waits.get():
            return self._at_once(ask)
        clock = self._clock
        patience = self._patience
        begun_ms = clock.uptime_ms()
        wait_ms = patience.first_wait_ms
        while True:
            try:
                return ask()
            except RegistryUnavailableError as error:
                remaining_ms = patience.timeout_ms - (clock.uptime_ms() - begun_ms)
                if remaining_ms <= 0 or patience.stopped.is_set():
                    raise
                logger.warning(
                    "waiting for the schema registry, for another %.0f s at most: %s", remaining_ms / 1000, error
                )
            clock.sleep(min(wait_ms, remaining_ms) / 1000, patience.stopped)
            wait_ms = min(2 * wait_ms, patience.longest_wait_ms)

    def _at_once(self, ask: Callable[[], T]) -> T:
        """Return the answer, or raise; during the backoff after a failure nobody asks: many inputs may wait."""
        now_ms = self._clock.uptime_ms()
        if now_ms < self._retry_at_ms:
            raise RegistryUnavailableError(self._failure)
        try:
            answer = ask()
        except RegistryUnavailableError as error:
            self._retry_at_ms = self._clock.uptime_ms() + self._backoff_ms
            self._failure = str(error)
            self._backoff_ms = min(2 * self._backoff_ms, self._patience.longest_wait_ms)
            raise
        self._backoff_ms = self._patience.first_wait_ms
        return answer
