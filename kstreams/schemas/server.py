"""`ServerRegistry`: a schema registry server with Confluent's HTTP interface, asked by confluent-kafka's client."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

from confluent_kafka.schema_registry import RegisteredSchema as Answer
from confluent_kafka.schema_registry import Schema as ClientSchema
from confluent_kafka.schema_registry import SchemaReference as ClientReference
from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError

from kstreams.config import masked, without_passwords
from kstreams.errors import (
    ConfigError,
    IncompatibleSchemaError,
    RegistryError,
    RegistryUnavailableError,
    SchemaNotFoundError,
)
from kstreams.kernel.clock import Clock, SystemClock
from kstreams.os.forks import of_one_process
from kstreams.schemas.compatibility.rules import violations
from kstreams.schemas.registry import RegisteredSchema, Schema, SchemaReference, SchemaRegistry

_PREFIX = "schema.registry."
_SHARED_SETTINGS = (
    "url",
    "basic.auth.user.info",
    "bearer.auth.token",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "proxy",
    "max.retries",
    "retries.wait.ms",
    "retries.max.wait.ms",
)
_TOKEN_SETTINGS = ("bearer.auth.logical.cluster", "bearer.auth.identity.pool.id")


def client_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the client, by its names.

    Raises
    ------
    ConfigError
        If a URL is invalid, or both a user and a token are set.

    Examples
    --------
    >>> from kstreams.config import Config
    >>> settings = client_settings(Config.of(schema_registry_url="http://localhost:8081"))
    >>> settings["url"], settings["timeout"], settings["max.retries"]
    ('http://localhost:8081', 10.0, 3)
    """
    _check_urls(config)
    settings = _settings_of(config, _SHARED_SETTINGS)
    settings["timeout"] = config[f"{_PREFIX}http.read.timeout.ms"] / 1000
    if "bearer.auth.token" in settings:
        if "basic.auth.user.info" in settings:
            raise ConfigError(
                "schema.registry.basic.auth.user.info and schema.registry.bearer.auth.token are both set: "
                "a request carries one of them"
            )
        settings.update(_settings_of(config, _TOKEN_SETTINGS), **{"bearer.auth.credentials.source": "STATIC_TOKEN"})
    return settings


def latest_ttl_ms(config: Mapping[str, Any]) -> int:
    """Return the time (ms) for which the newest version of a subject is cached; below 0 for ever."""
    return int(config["latest.cache.ttl.sec"]) * 1000


def shown_url(config: Mapping[str, object]) -> str:
    """Return the URLs of the server without passwords, for messages."""
    return without_passwords(str(config[f"{_PREFIX}url"]))


def _settings_of(config: Mapping[str, object], names: tuple[str, ...]) -> dict[str, object]:
    values = {name: config.get(_PREFIX + name) for name in names}
    return {
        name: str(value) if name.startswith("ssl.") else value for name, value in values.items() if value is not None
    }


def _check_urls(config: Mapping[str, object]) -> None:
    for url in str(config[f"{_PREFIX}url"]).split(","):
        if not url.strip().startswith(("http://", "https://")):
            raise ConfigError(
                f"schema.registry.url cannot be {without_passwords(url)!r}: give URLs such as http://localhost:8081, "
                "or `local:` for the registry in the embedded log"
            )


_NOT_FOUND = 404
_CONFLICT = 409
T = TypeVar("T")


class ServerRegistry(SchemaRegistry):
    """A schema registry server.

    Responses are cached, so that an application continues with its schemas while the server is away. Requests without a
    response, and with response 408, 429 or 5xx, are retried with a growing backoff (`schema.registry.max.retries`,
    `schema.registry.retries.wait.ms`).

    Parameters
    ----------
    config : mapping
        The settings `schema.registry.*` and `latest.cache.ttl.sec`.
    clock : Clock or None
        By default the clock of the machine.
    """

    def __init__(self, config: Mapping[str, Any], clock: Clock | None = None) -> None:
        self._config = config
        self._url = shown_url(config)
        try:
            self._client = SchemaRegistryClient(client_settings(config))
        except (ValueError, TypeError, OSError) as error:
            text = masked(str(error), config)
            raise ConfigError(f"the client of the schema registry {self._url} cannot be made: {text}") from None
        self._clock = clock or SystemClock()
        self._latest_ttl_ms = latest_ttl_ms(config)
        self._mutex = threading.Lock()
        self._answers: dict[tuple[object, ...], RegisteredSchema] = {}
        self._latest: dict[str, tuple[int, RegisteredSchema]] = {}
        of_one_process(self, "This schema registry", RegistryError)

    def schema(self, number: int) -> RegisteredSchema:
        """Return the schema of an id; cached after the first request."""
        return self._once(("id", number), lambda: self._by_id(number))

    def schema_of_guid(self, guid: str) -> RegisteredSchema:
        """Return the schema of a GUID; cached after the first request. Its id is 0: servers do not return the id."""
        return self._once(("guid", guid), lambda: self._by_guid(guid))

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Register a schema as the newest version of the subject, unless the subject has it already."""
        key = ("registered", subject, schema, normalize)
        return self._once(key, lambda: self._registered(subject, schema, normalize))

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Return the version of the subject with this schema."""
        key = ("registered", subject, schema, normalize)
        return self._once(key, lambda: self._looked_up(subject, schema, normalize))

    def version(self, subject: str, version: int | Literal["latest"] = "latest") -> RegisteredSchema:
        """Return a version of a subject; the newest is cached for `latest.cache.ttl.sec`."""
        if version != "latest":
            return self._once(("version", subject, version), lambda: self._by_version(subject, version))
        cached = self._latest.get(subject)
        if cached is not None and self._is_fresh(cached[0]):
            return cached[1]
        try:
            newest = self._by_version(subject, "latest")
        except SchemaNotFoundError:
            raise
        except RegistryError:
            if cached is None:
                raise
            return cached[1]
        self._latest[subject] = self._clock.uptime_ms(), newest
        return newest

    def subjects(self) -> Sequence[str]:
        """Return all subjects, sorted."""
        with self._errors("the list of subjects"):
            return sorted(self._client.get_subjects())

    def versions(self, subject: str) -> Sequence[int]:
        """Return the numbers of the versions of a subject, ascending."""
        with self._errors(f"the subject {subject!r}"):
            versions = sorted(self._client.get_versions(subject))
        if not versions:
            raise SchemaNotFoundError(f"all versions of the subject {subject!r} in {self._url} are deleted")
        return versions

    def incompatibilities(self, subject: str, schema: Schema) -> Sequence[str]:
        """Return the reasons why the server would refuse a schema as the next version; they are computed here."""
        try:
            with self._errors(f"the subject {subject!r}"):
                if self._client.test_compatibility_all_versions(subject, _for_client(schema)):
                    return []
        except SchemaNotFoundError:
            return []  # a new subject has no versions to be incompatible with
        reasons = violations(self, subject, schema)
        return reasons or [f"the schema registry {self._url} finds it incompatible, and does not say why"]

    def compatibility(self, subject: str | None = None) -> str:
        """Return the rule of a subject, or the default rule."""
        with self._errors("the rule of compatibility"):
            if subject is not None:
                try:
                    return str(self._client.get_compatibility(subject))
                except SchemaRegistryError as error:
                    if error.http_status_code != _NOT_FOUND:
                        raise
            return str(self._client.get_compatibility())

    def set_compatibility(self, rule: str, subject: str | None = None) -> None:
        """Change the rule of a subject, or the default rule."""
        with self._errors(f"the rule of compatibility {rule!r}"):
            self._client.set_compatibility(subject, rule)

    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> Sequence[int]:
        """Delete a version or the whole subject; return the numbers of the deleted versions."""
        with self._errors(_named(subject, version)):
            if version is None:
                deleted = self._client.delete_subject(subject, permanent)
            else:
                deleted = [self._client.delete_version(subject, version, permanent)]
        self._forget(subject)
        return sorted(deleted)

    def close(self) -> None:
        """Release connections."""
        self._client.close()

    def __repr__(self) -> str:
        return f"ServerRegistry({self._url})"

    def _once(self, key: tuple[object, ...], ask: Callable[[], RegisteredSchema]) -> RegisteredSchema:
        cached = self._answers.get(key)
        if cached is None:
            cached = ask()
            with self._mutex:
                cached = self._answers.setdefault(key, cached)
        return cached

    def _forget(self, subject: str) -> None:
        """Forget the cached responses about a subject. Ids stay cached, since records name them."""
        with self._mutex:
            self._latest.pop(subject, None)
            for key in [key for key in self._answers if key[1] == subject and key[0] in ("registered", "version")]:
                del self._answers[key]
        self._client.clear_caches()

    def _is_fresh(self, asked_ms: int) -> bool:
        return self._latest_ttl_ms < 0 or self._clock.uptime_ms() - asked_ms < self._latest_ttl_ms

    def _by_id(self, number: int) -> RegisteredSchema:
        with self._errors(f"the schema with the id {number}"):
            schema = self._client.get_schema(number)
        return RegisteredSchema(number, "", _from_client(schema))

    def _by_guid(self, guid: str) -> RegisteredSchema:
        with self._errors(f"the schema with the GUID {guid}"):
            schema = self._client.get_schema_by_guid(guid)
        return RegisteredSchema(0, guid, _from_client(schema))

    def _by_version(self, subject: str, version: int | str) -> RegisteredSchema:
        with self._errors(_named(subject, version)):
            if version == "latest":
                self._client.clear_latest_caches()
                return _registered(self._client.get_latest_version(subject))
            return _registered(self._client.get_version(subject, int(version)))

    def _registered(self, subject: str, schema: Schema, normalize: bool) -> RegisteredSchema:
        with self._errors(f"the subject {subject!r}"):
            answer = self._client.register_schema_full_response(subject, _for_client(schema), normalize)
        if answer.version is None or answer.guid is None:  # older servers respond only with the id
            return self._looked_up(subject, schema, normalize)
        return RegisteredSchema(answer.schema_id, answer.guid, schema, subject, answer.version)

    def _looked_up(self, subject: str, schema: Schema, normalize: bool) -> RegisteredSchema:
        with self._errors(f"this schema in the subject {subject!r}"):
            return _registered(self._client.lookup_schema(subject, _for_client(schema), normalize))

    @contextmanager
    def _errors(self, action: str) -> Iterator[None]:
        """Convert errors within the block; the message names the server and the action."""
        try:
            yield
        except SchemaRegistryError as error:
            raise self._refusal(action, error) from None
        except RegistryError:
            raise
        except Exception as error:  # errors of the HTTP client: no connection, a timeout, a response that is not JSON
            text = masked(f"{type(error).__name__}: {error}", self._config)
            raise _failure_of(error)(
                f"the schema registry {self._url} does not answer for {action}: {text}; check "
                "schema.registry.url, and whether the server runs"
            ) from error

    def _refusal(self, action: str, error: SchemaRegistryError) -> RegistryError:
        kind = _REFUSALS.get(error.http_status_code, RegistryUnavailableError if _is_away(error) else RegistryError)
        hint = _HINTS.get(error.http_status_code, "")
        text = masked(str(error.error_message), self._config)
        return kind(
            f"the schema registry {self._url} answers for {action}: {text} "
            f"(HTTP {error.http_status_code}, code {error.error_code}){hint}"
        )


_AWAY = frozenset((408, 429))
_SERVER_ERRORS = range(500, 600)
_REFUSALS = {_NOT_FOUND: SchemaNotFoundError, _CONFLICT: IncompatibleSchemaError}
_HINTS = {
    401: "; set schema.registry.basic.auth.user.info or schema.registry.bearer.auth.token",
    403: "; the user or token of schema.registry.* may not do this",
}


def _is_away(error: SchemaRegistryError) -> bool:
    """Return whether a response says that the server is temporarily unavailable."""
    return error.http_status_code in _AWAY or error.http_status_code in _SERVER_ERRORS


def _failure_of(error: BaseException) -> type[RegistryError]:
    """Return the type of the error of a request without a response. An unexpected response or an untrusted certificate
    is permanent: waiting does not help.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError | ValueError | TypeError):
            return RegistryError
        cause = cause.__cause__ or cause.__context__
    return RegistryUnavailableError


def _named(subject: str, version: int | str | None) -> str:
    return f"the subject {subject!r}" if version is None else f"version {version} of the subject {subject!r}"


def _for_client(schema: Schema) -> ClientSchema:
    references = [
        ClientReference(reference.name, reference.subject, reference.version) for reference in schema.references
    ]
    return ClientSchema(schema.text, schema.type, references)


def _from_client(schema: ClientSchema) -> Schema:
    references = tuple(
        SchemaReference(reference.name, reference.subject, reference.version) for reference in schema.references or ()
    )
    return Schema(schema.schema_str, schema.schema_type or "AVRO", references)


def _registered(answer: Answer) -> RegisteredSchema:
    schema = _from_client(answer.schema)
    return RegisteredSchema(answer.schema_id, answer.guid or "", schema, answer.subject or "", answer.version or 0)
