"""`kafka_options`: the settings of Kafka's clients as options of Spark's connector, whose client is that of Java."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

Settings = Mapping[str, Any]


class SecretValues(NamedTuple):
    """How options get what a program must not contain.

    Parameters
    ----------
    secret : callable
        Returns a password or a key, given the name of its setting.
    content : callable
        Returns the content of a file.
    """

    secret: Callable[[str], str]
    content: Callable[[str], str]

    @classmethod
    def of(cls, settings: Settings) -> SecretValues:
        """Return the values themselves, for a program that runs here."""
        return cls(lambda name: str(settings[name]), lambda path: Path(path).read_text())


_VARIABLES = {
    "sasl.password": "KAFKA_PASSWORD",
    "sasl.oauthbearer.client.secret": "KAFKA_CLIENT_SECRET",
    "ssl.key.password": "KAFKA_KEY_PASSWORD",
    "ssl.key.pem": "KAFKA_KEY",
    "ssl.keystore.password": "KAFKA_KEYSTORE_PASSWORD",
}
"""The variables of the environment from which a printed program takes passwords and keys, by setting."""

IN_TEXT = SecretValues(
    lambda name: f'{{os.environ["{_VARIABLES[name]}"]}}', lambda path: f'{{Path("{path}").read_text()}}'
)
"""Parts of f-strings for a program that is printed: what it must not contain, it reads when it runs."""


def kafka_options(settings: Settings, values: SecretValues) -> dict[str, str]:
    """Return the options of Spark's connector for the settings of Kafka's clients.

    Examples
    --------
    >>> kafka_options({"bootstrap.servers": "one:9092"}, IN_TEXT)
    {'kafka.bootstrap.servers': 'one:9092'}
    """
    options = {"bootstrap.servers": str(settings.get("bootstrap.servers") or "localhost:9092")}
    given = {name: value for name, value in settings.items() if value is not None}
    options |= {option: str(given[name]) for name, option in _RENAMED.items() if name in given}
    options |= {name: values.secret(name) for name in _PASSWORDS if name in given}
    options |= {name: text for part in (_trusted, _own_certificate, _login) for name, text in part(given, values)}
    if options.get("ssl.endpoint.identification.algorithm") == "none":
        options["ssl.endpoint.identification.algorithm"] = ""
    return {f"kafka.{name}": text for name, text in options.items()}


_RENAMED = {
    "security.protocol": "security.protocol",
    "sasl.mechanism": "sasl.mechanism",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.kerberos.service.name": "sasl.kerberos.service.name",
    "sasl.oauthbearer.token.endpoint.url": "sasl.oauthbearer.token.endpoint.url",
    "ssl.keystore.location": "ssl.keystore.location",
    "ssl.endpoint.identification.algorithm": "ssl.endpoint.identification.algorithm",
}
"""The settings of Java's client, by those of librdkafka."""

_PASSWORDS = ("ssl.keystore.password", "ssl.key.password")


def _trusted(given: Settings, values: SecretValues) -> Iterator[tuple[str, str]]:
    """Yield the options with the authorities that the client trusts."""
    if "ssl.ca.location" in given:
        yield "ssl.truststore.location", str(given["ssl.ca.location"])
    elif "ssl.ca.pem" in given:
        yield "ssl.truststore.certificates", str(given["ssl.ca.pem"])
    else:
        return
    yield "ssl.truststore.type", "PEM"


def _own_certificate(given: Settings, values: SecretValues) -> Iterator[tuple[str, str]]:
    """Yield the options with the certificate and the key of the client."""
    if "ssl.keystore.location" in given:
        yield "ssl.keystore.type", "PKCS12"
        return
    chain = given.get("ssl.certificate.pem") or _content(given, "ssl.certificate.location", values)
    if chain is None:
        return
    yield "ssl.keystore.type", "PEM"
    yield "ssl.keystore.certificate.chain", str(chain)
    of_file = _content(given, "ssl.key.location", values) or str(chain)
    yield "ssl.keystore.key", values.secret("ssl.key.pem") if "ssl.key.pem" in given else of_file


def _content(given: Settings, name: str, values: SecretValues) -> str | None:
    return values.content(str(given[name])) if name in given else None


def _login(given: Settings, values: SecretValues) -> Iterator[tuple[str, str]]:
    """Yield the options by which the client logs in."""
    mechanism = str(given.get("sasl.mechanism", given.get("sasl.mechanisms", ""))).upper()
    if "sasl.username" in given:
        module = "scram.ScramLoginModule" if "SCRAM" in mechanism else "plain.PlainLoginModule"
        parts = {"username": str(given["sasl.username"]), "password": values.secret("sasl.password")}
        yield "sasl.jaas.config", _jaas(f"org.apache.kafka.common.security.{module}", parts)
    elif mechanism == "OAUTHBEARER":
        package = "org.apache.kafka.common.security.oauthbearer"
        secret = values.secret("sasl.oauthbearer.client.secret")
        parts = {"clientId": str(given.get("sasl.oauthbearer.client.id", "")), "clientSecret": secret}
        if "sasl.oauthbearer.scope" in given:
            parts["scope"] = str(given["sasl.oauthbearer.scope"])
        yield "sasl.jaas.config", _jaas(f"{package}.OAuthBearerLoginModule", parts)
        yield "sasl.login.callback.handler.class", f"{package}.OAuthBearerLoginCallbackHandler"
    elif "sasl.kerberos.keytab" in given:
        parts = {"useKeyTab": "true", "storeKey": "true", "keyTab": str(given["sasl.kerberos.keytab"])}
        parts["principal"] = str(given.get("sasl.kerberos.principal", ""))
        yield "sasl.jaas.config", _jaas("com.sun.security.auth.module.Krb5LoginModule", parts)


def _jaas(module: str, parts: Mapping[str, str]) -> str:
    return " ".join([module, "required", *(f'{name}="{value}"' for name, value in parts.items())]) + ";"
