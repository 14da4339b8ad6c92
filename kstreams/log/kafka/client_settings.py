"""Settings of Kafka's clients: Kafka's names are translated to librdkafka's, and unsafe settings are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kstreams.config import masked
from kstreams.errors import ConfigError
from kstreams.log.naming import did_you_mean

T = TypeVar("T")

ALLOW_INSECURE = "security.allow.insecure"
SECURITY_PREFIXES = ("sasl.", "ssl.")
SECURITY_KEYS = (
    "security.protocol",
    ALLOW_INSECURE,
    "enable.ssl.certificate.verification",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.username",
    "sasl.password",
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.scope",
    "sasl.kerberos.service.name",
    "sasl.kerberos.principal",
    "sasl.kerberos.keytab",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.key.location",
    "ssl.key.pem",
    "ssl.key.password",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.endpoint.identification.algorithm",
)
"""The settings of authentication and encryption. Other settings that begin with `sasl.` or `ssl.` are passed on too."""

_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.partition.fetch.bytes": "fetch.message.max.bytes",
    "max.request.size": "message.max.bytes",
    "request.timeout.ms": "socket.timeout.ms",
}
_UNSUPPORTED = {
    "sasl.jaas.config": "give sasl.username and sasl.password",
    "ssl.truststore.location": "give ssl.ca.location, a file of certificates as PEM",
    "ssl.truststore.password": "give ssl.ca.location, a file of certificates as PEM",
    "ssl.keystore.type": "give ssl.certificate.location and ssl.key.location, or a PKCS#12 ssl.keystore.location",
    "sasl.login.callback.handler.class": "classes of Java cannot be used here",
    "enable.auto.commit": "positions are committed with what follows from them",
    "enable.auto.offset.store": "positions are committed with what follows from them",
    "enable.partition.eof": "positions depend on it",
}
_KNOWN_SETTINGS = (
    "linger.ms", "batch.size", "acks", "compression.type", "isolation.level", "auto.offset.reset", "client.id",
    "fetch.min.bytes", "session.timeout.ms", "transactional.id", "transaction.timeout.ms", *_RENAMED, *SECURITY_KEYS,
)  # fmt: skip


def client_settings(base: Mapping[str, Any], settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the settings of one client, by librdkafka's names.

    Parameters
    ----------
    base : mapping
        Settings of the cluster: addresses and security.
    settings : mapping or None
        Settings of this client, by Kafka's or librdkafka's names; they override `base`.

    Raises
    ------
    ConfigError
        For settings that cannot be used, with advice, and for unsafe settings without `security.allow.insecure`.

    Examples
    --------
    >>> client_settings({"bootstrap.servers": "one:9092"}, {"fetch.max.wait.ms": 5})
    {'bootstrap.servers': 'one:9092', 'fetch.wait.max.ms': 5}
    """
    full = {name: value for name, value in {**base, **(settings or {})}.items() if value is not None}
    for name in full.keys() & _UNSUPPORTED.keys():
        raise ConfigError(f"{name!r} cannot be set for Kafka's client: {_UNSUPPORTED[name]}.")
    is_allowed = str(full.pop(ALLOW_INSECURE, False)).lower() == "true"
    if not is_allowed and (risk := _security_risk(full)):
        raise ConfigError(f"{risk} If that is what you want, set {ALLOW_INSECURE}=true.")
    return {_RENAMED.get(name, name): _as_text(value) for name, value in full.items()}


def create_client(kind: str, create: Callable[[dict[str, Any]], T], settings: dict[str, Any]) -> T:
    """Create a client of confluent-kafka; ConfigError for a setting that the client refuses."""
    try:
        return create(settings)
    except Exception as error:
        text = masked(str(getattr(error, "args", [error])[0]), settings)
        wrong = next((name for name in settings if f'"{name}"' in text), "")
        hint = did_you_mean(wrong, (name for name in _KNOWN_SETTINGS if name != wrong)) if "No such" in text else ""
        raise ConfigError(f"Kafka's client does not take a {kind} setting: {text}.{hint}") from None


def _security_risk(settings: Mapping[str, Any]) -> str | None:
    protocol = str(settings.get("security.protocol", "plaintext")).lower()
    if protocol == "sasl_plaintext":
        return "security.protocol=SASL_PLAINTEXT sends credentials and records unencrypted: use SASL_SSL."
    if str(settings.get("enable.ssl.certificate.verification", "true")).lower() == "false":
        return "enable.ssl.certificate.verification=false trusts every server: give its authority in ssl.ca.location."
    if str(settings.get("ssl.endpoint.identification.algorithm", "https")).lower() in ("", "none"):
        return "ssl.endpoint.identification.algorithm=none trusts certificates of other servers: leave it out."
    if protocol == "plaintext" and any(name.startswith("sasl.") for name in settings):
        return "There are sasl settings, but security.protocol is PLAINTEXT: the client does not log in. Use SASL_SSL."
    return None


def _as_text(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value
