"""`RetryingRegistry`: the schema registry of an application, which retries with backoff while a server is away."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Literal, TypeVar

from kstreams.errors import RegistryUnavailableError
from kstreams.kernel.clock import Clock, SystemClock
from kstreams.schemas.registry import RegisteredSchema, Schema, SchemaRegistry

logger = logging.getLogger(__name__)

T = TypeVar("T")
_LEAST_WAIT_MS = 10
_waits = ContextVar("_waits", default=True)


@contextmanager
def without_waiting() -> Iterator[None]:
    """Let requests of this thread fail at once while a registry is away, since the caller retries itself."""
    token = _waits.set(False)
    try:
        yield
    finally:
        _waits.reset(token)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Timeout and backoff of requests to a registry that does not answer.

    Parameters
    ----------
    timeout_ms : int
        Counted from the first request that failed. 0 means no retry.
    first_wait_ms : int
        Wait before the first retry. Each further wait is twice as long.
    longest_wait_ms : int
    stopped : Event
        Ends all waits when it is set.
    """

    timeout_ms: int
    first_wait_ms: int
    longest_wait_ms: int
    stopped: Event = field(default_factory=Event)

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> RetryPolicy:
        """Read timeout and backoff from a configuration.

        Examples
        --------
        >>> from kstreams.config import Config
        >>> RetryPolicy.of(Config.of(task_timeout_ms=60_000)).timeout_ms
        60000
        """
        waits = (config[f"schema.registry.retries.{name}"] for name in ("wait.ms", "max.wait.ms"))
        return cls(config["task.timeout.ms"], *(max(_LEAST_WAIT_MS, wait) for wait in waits))


class RetryingRegistry(SchemaRegistry):
    """A schema registry that retries while the registry behind it does not answer, so that an outage fails no record.

    Schemas in the cache of the registry behind it are returned at once.

    Parameters
    ----------
    registry : SchemaRegistry
        The registry behind this one. `close` closes it.
    patience : Patience
    clock : Clock or None
        Default: the clock of the machine.
    """

    def __init__(self, registry: SchemaRegistry, patience: RetryPolicy, clock: Clock | None = None) -> None:
        self._registry = registry
        self._patience = patience
        self._clock = clock or SystemClock()
        self._backoff_ms = patience.first_wait_ms
        self._retry_at_ms = 0
        self._failure = ""

    def schema(self, number: int) -> RegisteredSchema:
        return self._with_retries(lambda: self._registry.schema(number))

    def schema_of_guid(self, guid: str) -> RegisteredSchema:
        return self._with_retries(lambda: self._registry.schema_of_guid(guid))

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        return self._with_retries(lambda: self._registry.register(subject, schema, normalize=normalize))

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        return self._with_retries(lambda: self._registry.lookup(subject, schema, normalize=normalize))

    def version(self, subject: str, version: int | Literal["latest"] = "latest") -> RegisteredSchema:
        return self._with_retries(lambda: self._registry.version(subject, version))

    def subjects(self) -> Sequence[str]:
        return self._with_retries(self._registry.subjects)

    def versions(self, subject: str) -> Sequence[int]:
        return self._with_retries(lambda: self._registry.versions(subject))

    def incompatibilities(self, subject: str, schema: Schema) -> Sequence[str]:
        return self._with_retries(lambda: self._registry.incompatibilities(subject, schema))

    def compatibility(self, subject: str | None = None) -> str:
        return self._with_retries(lambda: self._registry.compatibility(subject))

    def set_compatibility(self, rule: str, subject: str | None = None) -> None:
        self._with_retries(lambda: self._registry.set_compatibility(rule, subject))

    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> Sequence[int]:
        """Delete without a retry, since a person is waiting for the result."""
        return self._registry.delete(subject, version, permanent=permanent)

    def close(self) -> None:
        self._registry.close()

    def __repr__(self) -> str:
        return f"PatientRegistry({self._registry!r})"

    def _with_retries(self, request: Callable[[], T]) -> T:
        """Return the answer of a request. Raise the last error after the timeout."""
        if not _waits.get():
            return self._at_once(request)
        clock = self._clock
        patience = self._patience
        start_ms = clock.uptime_ms()
        wait_ms = patience.first_wait_ms
        while True:
            try:
                return request()
            except RegistryUnavailableError as error:
                remaining_ms = patience.timeout_ms - (clock.uptime_ms() - start_ms)
                if remaining_ms <= 0 or patience.stopped.is_set():
                    raise
                logger.warning(
                    "waiting for the schema registry, for another %.0f s at most: %s", remaining_ms / 1000, error
                )
            clock.sleep(min(wait_ms, remaining_ms) / 1000, patience.stopped)
            wait_ms = min(2 * wait_ms, patience.longest_wait_ms)

    def _at_once(self, request: Callable[[], T]) -> T:
        """Return the answer or raise. During the backoff after a failure no request is sent, since many inputs wait."""
        now_ms = self._clock.uptime_ms()
        if now_ms < self._retry_at_ms:
            raise RegistryUnavailableError(self._failure)
        try:
            answer = request()
        except RegistryUnavailableError as error:
            self._retry_at_ms = self._clock.uptime_ms() + self._backoff_ms
            self._failure = str(error)
            self._backoff_ms = min(2 * self._backoff_ms, self._patience.longest_wait_ms)
            raise
        self._backoff_ms = self._patience.first_wait_ms
        return answer
