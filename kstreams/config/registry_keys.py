"""The configuration keys for schema registries, with the names of Confluent's client and serializers."""

from __future__ import annotations

from kstreams.config.key import Key
from kstreams.config.kinds import (
    FLAG,
    OBJECT,
    PATH,
    SERVERS,
    TEXT,
    class_choice,
    duration,
    integer,
    naming_strategy,
)

_STRATEGY = (
    "`topic` (`orders-value`), `record` (the full name of the record), `topic-record` (both), the name of Confluent's "
    "class for one of them, or a function `(topic, is_key, record_name)` that returns the subject."
)
_ID_PLACE = (
    "`prefix` (a zero byte and the four bytes of its id), `header` (its GUID in a header), or the name of Confluent's "
    "class for one of them."
)

REGISTRY_KEYS = (
    Key(
        "schema.registry.url",
        SERVERS,
        None,
        "Schema registry: URLs of a server, comma separated, tried in order; or `local:`, which keeps schemas in the "
        "catalogue of the embedded log in `log.dir` (`local:/data/log`: of that log).",
    ),
    Key(
        "schema.registry.basic.auth.credentials.source",
        class_choice("URL", "USER_INFO"),
        None,
        "Where user and password for the schema registry come from: its URL, or "
        "`schema.registry.basic.auth.user.info`. Not needed: whichever is set is used.",
    ),
    Key(
        "schema.registry.basic.auth.user.info",
        TEXT,
        None,
        "User and password for the schema registry: `user:password`.",
    ),
    Key(
        "schema.registry.bearer.auth.credentials.source",
        class_choice("STATIC_TOKEN"),
        None,
        "Where the token for the schema registry comes from: `schema.registry.bearer.auth.token`.",
    ),
    Key(
        "schema.registry.bearer.auth.token",
        TEXT,
        None,
        "Token for the schema registry, sent as `Authorization: Bearer`.",
    ),
    Key(
        "schema.registry.bearer.auth.logical.cluster",
        TEXT,
        "",
        "Logical cluster of the schema registry (`lsrc-…`), which Confluent Cloud asks for beside a token.",
    ),
    Key(
        "schema.registry.bearer.auth.identity.pool.id",
        TEXT,
        None,
        "Identity pool, which Confluent Cloud asks for beside a token.",
    ),
    Key(
        "schema.registry.ssl.ca.location",
        PATH,
        None,
        "File or folder of the certificates (PEM) of the authorities that may sign the certificate of the schema "
        "registry. Default: the authorities that the client comes with.",
    ),
    Key(
        "schema.registry.ssl.certificate.location",
        PATH,
        None,
        "Certificate (PEM) by which this client authenticates to the schema registry.",
    ),
    Key("schema.registry.ssl.key.location", PATH, None, "Private key (PEM) of that certificate."),
    Key("schema.registry.ssl.key.password", TEXT, None, "Password of that private key."),
    Key(
        "schema.registry.proxy",
        TEXT,
        None,
        "HTTP proxy before the schema registry, such as `http://localhost:8030`.",
        own=True,
    ),
    Key(
        "schema.registry.http.read.timeout.ms",
        duration(1),
        10_000,
        "Time after which a request to the schema registry counts as not answered. Java's client: 60 s.",
    ),
    Key(
        "schema.registry.max.retries",
        integer(0),
        3,
        "Number of retries of a request that the schema registry does not answer, or answers with 408, 429 or 5xx.",
    ),
    Key(
        "schema.registry.retries.wait.ms",
        duration(0),
        1_000,
        "Greatest time before the first retry; it doubles with each further one. The time is random below it.",
    ),
    Key("schema.registry.retries.max.wait.ms", duration(0), 20_000, "Greatest time between two retries."),
    Key(
        "latest.cache.ttl.sec",
        integer(-1),
        -1,
        "Time for which the newest version of a subject is cached; -1: as long as the application runs.",
    ),
    Key(
        "auto.register.schemas",
        FLAG,
        True,
        "Whether a schema that is written for the first time is registered; if not, it must be a version of its "
        "subject already.",
    ),
    Key(
        "use.latest.version",
        FLAG,
        False,
        "Whether records are written with the newest version of the subject, not with the schema of the serde; needs "
        "`auto.register.schemas=false`.",
    ),
    Key(
        "use.schema.id",
        integer(1),
        None,
        "Id of the schema with which records are written; needs `auto.register.schemas=false`.",
    ),
    Key(
        "normalize.schemas",
        FLAG,
        False,
        "Whether schemas are compared in their normal form, in which the order of attributes does not matter.",
    ),
    Key(
        "latest.compatibility.strict",
        FLAG,
        True,
        "Whether `use.latest.version` is refused where the schema of the serde is not compatible with the newest.",
    ),
    Key(
        "id.compatibility.strict",
        FLAG,
        True,
        "Whether `use.schema.id` is refused where the schema of the serde is not compatible with that one.",
    ),
    Key(
        "key.subject.name.strategy",
        naming_strategy(),
        "topic",
        f"Subject of the schemas of keys: {_STRATEGY}",
    ),
    Key(
        "value.subject.name.strategy",
        naming_strategy(),
        "topic",
        f"Subject of the schemas of values: {_STRATEGY}",
    ),
    Key(
        "key.schema.id.serializer",
        class_choice("prefix", "header", "PrefixSchemaIdSerializer", "HeaderSchemaIdSerializer"),
        "prefix",
        f"Where keys say what their schema is: {_ID_PLACE}",
    ),
    Key(
        "value.schema.id.serializer",
        class_choice("prefix", "header", "PrefixSchemaIdSerializer", "HeaderSchemaIdSerializer"),
        "prefix",
        f"Where values say what their schema is: {_ID_PLACE}",
    ),
)


def _unused(name: str, reason: str) -> Key:
    return Key(name, OBJECT, None, f"Not used here: {reason}.", used=False)


UNUSED_REGISTRY_KEYS = (
    _unused("avro.reflection.allow.null", "`Optional` says which fields may be null"),
    _unused("avro.remove.java.properties", "schemas that Python derives have no properties of Java"),
    _unused("avro.use.logical.type.converters", "logical types are always converted"),
    _unused("json.value.type", "the serde names the type"),
    _unused("max.schemas.per.subject", "the client caches every schema that it has read"),
    _unused("specific.avro.reader", "the serde names the type"),
    _unused("specific.protobuf.key.type", "the serde names the type"),
    _unused("specific.protobuf.value.type", "the serde names the type"),
)

SHORT_NAMES = {
    "basic.auth.credentials.source": "schema.registry.basic.auth.credentials.source",
    "basic.auth.user.info": "schema.registry.basic.auth.user.info",
    "bearer.auth.credentials.source": "schema.registry.bearer.auth.credentials.source",
    "bearer.auth.identity.pool.id": "schema.registry.bearer.auth.identity.pool.id",
    "bearer.auth.logical.cluster": "schema.registry.bearer.auth.logical.cluster",
    "bearer.auth.token": "schema.registry.bearer.auth.token",
}
"""Confluent's clients also take these keys without their prefix."""

CURES = {
    "schema.registry.ssl.keystore.location": "give schema.registry.ssl.certificate.location and "
    "schema.registry.ssl.key.location, files in PEM format",
    "schema.registry.ssl.keystore.password": "give schema.registry.ssl.key.password, that of the private key",
    "schema.registry.ssl.keystore.type": "certificates and keys are files in PEM format",
    "schema.registry.ssl.key.pem": "give schema.registry.ssl.key.location, a file in PEM format",
    "schema.registry.ssl.truststore.location": "give schema.registry.ssl.ca.location, a file in PEM format",
    "schema.registry.ssl.truststore.password": "give schema.registry.ssl.ca.location, a file in PEM format",
    "schema.registry.ssl.truststore.type": "give schema.registry.ssl.ca.location, a file in PEM format",
    "schema.registry.ssl.endpoint.identification.algorithm": "the name in the server's certificate is always checked",
}
"""Keys of the Java clients that kstreams does not support, and what to do instead."""
