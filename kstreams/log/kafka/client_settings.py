"""`client_settings`: translates the settings of Kafka's clients to librdkafka's, and refuses unsafe settings."""

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
    "sasl.login.callback.handler.class": "librdkafka cannot use classes of Java",
    "enable.auto.commit": "positions are committed together with the results of their records",
    "enable.auto.offset.store": "positions are committed together with the results of their records",
    "enable.partition.eof": "kstreams needs it for positions",
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
        Settings of this client, by Kafka's or librdkafka's names. They override `base`.

    Raises
    ------
    ConfigError
        If a setting is not supported, or is unsafe without `security.allow.insecure`.

    Examples
    --------
    >>> client_settings({"bootstrap.servers": "one:9092"}, {"fetch.max.wait.ms": 5})
    {'bootstrap.servers': 'one:9092', 'fetch.wait.max.ms': 5}
    """
    all_settings = {name: value for name, value in {**base, **(settings or {})}.items() if value is not None}
    for name in all_settings.keys() & _UNSUPPORTED.keys():
        raise ConfigError(f"{name!r} cannot be set for Kafka's client: {_UNSUPPORTED[name]}.")
    is_allowed = str(all_settings.pop(ALLOW_INSECURE, False)).lower() == "true"
    if not is_allowed and (risk := _security_risk(all_settings)):
        raise ConfigError(f"{risk} If that is what you want, set {ALLOW_INSECURE}=true.")
    return {_RENAMED.get(name, name): _as_text(value) for name, value in all_settings.items()}


def create_client(kind: str, create: Callable[[dict[str, Any]], T], settings: dict[str, Any]) -> T:
    """Create a client of confluent-kafka. Raises ConfigError for a setting that the client refuses."""
    try:
        return create(settings)
    except Exception as error:
        text = masked(str(getattr(error, "args", [error])[0]), settings)
        wrong_name = next((name for name in settings if f'"{name}"' in text), "")
        other_names = (name for name in _KNOWN_SETTINGS if name != wrong_name)
        hint = did_you_mean(wrong_name, other_names) if "No such" in text else ""
        raise ConfigError(f"Kafka's client refuses a {kind} setting: {text}.{hint}") from None


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
