"""`ServerRegistry`: a schema registry server with Confluent's HTTP interface, behind confluent-kafka's client."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from confluent_kafka.schema_registry import RegisteredSchema as ClientRegisteredSchema
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
_NOT_FOUND = 404
_CONFLICT = 409
_UNAVAILABLE = frozenset((408, 429, *range(500, 600)))
_ERRORS = {_NOT_FOUND: SchemaNotFoundError, _CONFLICT: IncompatibleSchemaError}
_HINTS = {
    401: "; set schema.registry.basic.auth.user.info or schema.registry.bearer.auth.token",
    403: "; the user or token of schema.registry.* may not do this",
}


def client_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of confluent-kafka's client, under the names that it uses.

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
                "a request carries only one of them, so remove the other"
            )
        settings.update(_settings_of(config, _TOKEN_SETTINGS), **{"bearer.auth.credentials.source": "STATIC_TOKEN"})
    return settings


def latest_ttl_ms(config: Mapping[str, Any]) -> int:
    """Return how long (ms) the newest version of a subject is cached. A negative number means without limit."""
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


class ServerRegistry(SchemaRegistry):
    """A schema registry server.

    Responses are cached, so that an application continues with its schemas while the server is unavailable. Requests
    without a response, and requests with the response 408, 429 or 5xx, are retried with a growing backoff
    (`schema.registry.max.retries`, `schema.registry.retries.wait.ms`).

    Parameters
    ----------
    config : mapping
        The settings `schema.registry.*` and `latest.cache.ttl.sec`.
    clock : Clock or None
        Default: the clock of the machine.
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
        self._schemas: dict[tuple[object, ...], RegisteredSchema] = {}
        self._latest: dict[str, tuple[int, RegisteredSchema]] = {}
        of_one_process(self, "This schema registry", RegistryError)

    def schema(self, number: int) -> RegisteredSchema:
        """Return the schema of an id. It is cached after the first request."""
        return self._cached(("id", number), lambda: self._fetch_by_id(number))

    def schema_of_guid(self, guid: str) -> RegisteredSchema:
        """Return the schema of a GUID. It is cached after the first request. Its id is 0: servers return no id."""
        return self._cached(("guid", guid), lambda: self._fetch_by_guid(guid))

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Register a schema as the newest version of the subject, unless the subject has it already."""
        key = ("registered", subject, schema, normalize)
        return self._cached(key, lambda: self._register(subject, schema, normalize))

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Return the version of the subject that has this schema."""
        key = ("registered", subject, schema, normalize)
        return self._cached(key, lambda: self._fetch_same(subject, schema, normalize))

    def version(self, subject: str, version: int | Literal["latest"] = "latest") -> RegisteredSchema:
        """Return a version of a subject. The newest version is cached for `latest.cache.ttl.sec`.

        While the server does not answer, the cached newest version is returned even if it is older.
        """
        if version != "latest":
            return self._cached(("version", subject, version), lambda: self._fetch_version(subject, version))
        cached = self._latest.get(subject)
        if cached is not None and self._is_fresh(cached[0]):
            return cached[1]
        try:
            newest = self._fetch_version(subject, "latest")
        except SchemaNotFoundError:
            raise
        except RegistryError:
            if cached is None:
                raise
            return cached[1]
        self._latest[subject] = (self._clock.uptime_ms(), newest)
        return newest

    def subjects(self) -> Sequence[str]:
        """Return all subjects, sorted."""
        with self._converted_errors("the list of subjects"):
            return sorted(self._client.get_subjects())

    def versions(self, subject: str) -> Sequence[int]:
        """Return the numbers of the versions of a subject, ascending."""
        with self._converted_errors(f"the subject {subject!r}"):
            versions = sorted(self._client.get_versions(subject))
        if not versions:
            raise SchemaNotFoundError(f"all versions of the subject {subject!r} in {self._url} are deleted")
        return versions

    def incompatibilities(self, subject: str, schema: Schema) -> Sequence[str]:
        """Return the reasons why the server would refuse a schema as the next version.

        The server only decides. The reasons are computed in this process.
        """
        try:
            with self._converted_errors(f"the subject {subject!r}"):
                if self._client.test_compatibility_all_versions(subject, _for_client(schema)):
                    return []
        except SchemaNotFoundError:
            return []  # a new subject has no versions to be incompatible with
        reasons = violations(self, subject, schema)
        return reasons or [f"the schema registry {self._url} refuses the schema as incompatible, and does not say why"]

    def compatibility(self, subject: str | None = None) -> str:
        """Return the rule of a subject, or the default rule."""
        with self._converted_errors("the rule of compatibility"):
            if subject is not None:
                try:
                    return str(self._client.get_compatibility(subject))
                except SchemaRegistryError as error:
                    if error.http_status_code != _NOT_FOUND:
                        raise
            return str(self._client.get_compatibility())

    def set_compatibility(self, rule: str, subject: str | None = None) -> None:
        """Change the rule of a subject, or the default rule."""
        with self._converted_errors(f"the rule of compatibility {rule!r}"):
            self._client.set_compatibility(subject, rule)

    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> Sequence[int]:
        """Delete a version or the whole subject, and return the numbers of the deleted versions."""
        with self._converted_errors(_version_in_words(subject, version)):
            if version is None:
                deleted = self._client.delete_subject(subject, permanent)
            else:
                deleted = [self._client.delete_version(subject, version, permanent)]
        self._drop_cached(subject)
        return sorted(deleted)

    def close(self) -> None:
        """Release connections."""
        self._client.close()

    def __repr__(self) -> str:
        return f"ServerRegistry({self._url})"

    def _cached(self, key: tuple[object, ...], fetch: Callable[[], RegisteredSchema]) -> RegisteredSchema:
        """Return the cached schema of a key. Fetch it on first use."""
        schema = self._schemas.get(key)
        if schema is None:
            schema = fetch()
            with self._mutex:
                schema = self._schemas.setdefault(key, schema)
        return schema

    def _drop_cached(self, subject: str) -> None:
        """Drop the cached responses about a subject. Schemas by id stay cached, since records hold their ids."""
        with self._mutex:
            self._latest.pop(subject, None)
            for key in [key for key in self._schemas if key[1] == subject and key[0] in ("registered", "version")]:
                del self._schemas[key]
        self._client.clear_caches()

    def _is_fresh(self, fetched_ms: int) -> bool:
        return self._latest_ttl_ms < 0 or self._clock.uptime_ms() - fetched_ms < self._latest_ttl_ms

    def _fetch_by_id(self, number: int) -> RegisteredSchema:
        with self._converted_errors(f"the schema with the id {number}"):
            schema = self._client.get_schema(number)
        return RegisteredSchema(number, "", _from_client(schema))

    def _fetch_by_guid(self, guid: str) -> RegisteredSchema:
        with self._converted_errors(f"the schema with the GUID {guid}"):
            schema = self._client.get_schema_by_guid(guid)
        return RegisteredSchema(0, guid, _from_client(schema))

    def _fetch_version(self, subject: str, version: int | str) -> RegisteredSchema:
        with self._converted_errors(_version_in_words(subject, version)):
            if version == "latest":
                self._client.clear_latest_caches()
                return _registered_from_client(self._client.get_latest_version(subject))
            return _registered_from_client(self._client.get_version(subject, int(version)))

    def _register(self, subject: str, schema: Schema, normalize: bool) -> RegisteredSchema:
        with self._converted_errors(f"the subject {subject!r}"):
            response = self._client.register_schema_full_response(subject, _for_client(schema), normalize)
        if response.version is None or response.guid is None:  # older servers respond only with the id
            return self._fetch_same(subject, schema, normalize)
        return RegisteredSchema(response.schema_id, response.guid, schema, subject, response.version)

    def _fetch_same(self, subject: str, schema: Schema, normalize: bool) -> RegisteredSchema:
        with self._converted_errors(f"this schema in the subject {subject!r}"):
            return _registered_from_client(self._client.lookup_schema(subject, _for_client(schema), normalize))

    @contextmanager
    def _converted_errors(self, resource: str) -> Iterator[None]:
        """Convert errors within the block. The messages name the server and the requested resource."""
        try:
            yield
        except SchemaRegistryError as error:
            raise self._response_error(resource, error) from None
        except RegistryError:
            raise
        except Exception as error:  # errors of the HTTP client: no connection, a timeout, a response that is not JSON
            text = masked(f"{type(error).__name__}: {error}", self._config)
            raise _error_type(error)(
                f"the schema registry {self._url} does not answer for {resource}: {text}; check "
                "schema.registry.url, and whether the server runs"
            ) from error

    def _response_error(self, resource: str, error: SchemaRegistryError) -> RegistryError:
        """Return the error for an error response."""
        status = error.http_status_code
        error_type = RegistryUnavailableError if status in _UNAVAILABLE else _ERRORS.get(status, RegistryError)
        hint = _HINTS.get(status, "")
        text = masked(str(error.error_message), self._config)
        return error_type(
            f"the schema registry {self._url} answers for {resource}: {text} "
            f"(HTTP {status}, code {error.error_code}){hint}"
        )


def _error_type(error: BaseException) -> type[RegistryError]:
    """Return the type of error for a request without a valid response.

    An untrusted certificate and a response in another format are permanent errors: waiting does not help.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError | ValueError | TypeError):
            return RegistryError
        cause = cause.__cause__ or cause.__context__
    return RegistryUnavailableError


def _version_in_words(subject: str, version: int | str | None) -> str:
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


def _registered_from_client(version: ClientRegisteredSchema) -> RegisteredSchema:
    schema = _from_client(version.schema)
    return RegisteredSchema(version.schema_id, version.guid or "", schema, version.subject or "", version.version or 0)
