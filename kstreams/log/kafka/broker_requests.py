"""`BrokerRequests`: requests that Kafka's client does not offer, over an own connection to one of the brokers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import socket
import ssl
import struct
from collections.abc import Mapping
from types import TracebackType
from typing import TypeAlias

from confluent_kafka import KafkaError

from kstreams.errors import ConfigError, LogError
from kstreams.log.kafka.failures import log_error

_SASL_HANDSHAKE = 17
_SASL_AUTHENTICATE = 36
_CLIENT = "kstreams"
_SCRAM_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_MOST_BYTES = 64 << 20

Settings: TypeAlias = Mapping[str, object]


class Encoder:
    """The bytes of a request, in Kafka's protocol.

    Examples
    --------
    >>> Encoder().int16(1).text("a").text(None).content
    b'\\x00\\x01\\x00\\x01a\\xff\\xff'
    """

    def __init__(self) -> None:
        self.content = b""

    def int8(self, value: int) -> Encoder:
        return self._pack(">b", value)

    def int16(self, value: int) -> Encoder:
        return self._pack(">h", value)

    def int32(self, value: int) -> Encoder:
        return self._pack(">i", value)

    def float64(self, value: float) -> Encoder:
        return self._pack(">d", value)

    def text(self, value: str | None) -> Encoder:
        if value is None:
            return self.int16(-1)
        encoded = value.encode()
        self.int16(len(encoded)).content += encoded
        return self

    def blob(self, value: bytes) -> Encoder:
        self.int32(len(value)).content += value
        return self

    def _pack(self, layout: str, value: float) -> Encoder:
        self.content += struct.pack(layout, value)
        return self


class Decoder:
    """Reads the bytes of a response, in Kafka's protocol.

    Examples
    --------
    >>> response = Decoder(b"\\x00\\x01\\x00\\x01a\\xff\\xff")
    >>> response.int16(), response.text(), response.text()
    (1, 'a', None)
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def int16(self) -> int:
        return int(self._unpack(">h"))

    def int32(self) -> int:
        return int(self._unpack(">i"))

    def float64(self) -> float:
        return self._unpack(">d")

    def text(self) -> str | None:
        size = self.int16()
        return None if size < 0 else self._take(size).decode()

    def blob(self) -> bytes:
        return self._take(max(0, self.int32()))

    def _unpack(self, layout: str) -> float:
        (value,) = struct.unpack(layout, self._take(struct.calcsize(layout)))
        return float(value) if layout == ">d" else int(value)

    def _take(self, size: int) -> bytes:
        part = self._content[self._position : self._position + size]
        if len(part) < size:
            raise LogError("A broker sent a response that ends too early.")
        self._position += size
        return part


class BrokerRequests:
    """A connection to the first broker that can be reached. Usable as a context manager.

    Parameters
    ----------
    settings : mapping
        The settings of Kafka's client, by librdkafka's names: addresses and security.
    timeout_s : float
        Of the connection, and of each request.

    Raises
    ------
    LogError
        If no broker can be reached, or the log-in is refused.
    ConfigError
        If this connection does not support a setting.
    """

    def __init__(self, settings: Settings, timeout_s: float) -> None:
        self._settings = settings
        self._timeout_s = timeout_s
        self._correlation = 0
        self._protocol = str(settings.get("security.protocol", "plaintext")).lower()
        self._socket = self._connected()
        try:
            if self._protocol.startswith("sasl_"):
                self._log_in()
        except BaseException:
            self._socket.close()
            raise

    def request(self, api: int, version: int, body: Encoder) -> Decoder:
        """Send a request, and return the body of its response."""
        self._correlation += 1
        header = Encoder().int16(api).int16(version).int32(self._correlation).text(_CLIENT)
        try:
            self._socket.sendall(Encoder().blob(header.content + body.content).content)
            (size,) = struct.unpack(">i", self._received(4))
            if not 4 <= size <= _MOST_BYTES:
                raise LogError(f"A broker of {self._servers} sent a response of {size} bytes: it is no Kafka broker.")
            response = Decoder(self._received(size))
        except OSError as error:
            raise LogError(f"A broker of {self._servers} did not answer: {error}.") from None
        response.int32()  # the correlation id
        return response

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def __enter__(self) -> BrokerRequests:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _servers(self) -> str:
        return str(self._settings["bootstrap.servers"])

    def _connected(self) -> socket.socket:
        reasons = []
        for server in self._servers.split(","):
            host, _, port = server.strip().rpartition(":")
            try:
                return self._open(host.strip("[]"), int(port))
            except OSError as error:
                reasons.append(f"{server.strip()}: {error}")
        raise LogError(f"No broker of bootstrap.servers={self._servers} can be reached ({'; '.join(reasons)}).")

    def _open(self, host: str, port: int) -> socket.socket:
        plain = socket.create_connection((host, port), self._timeout_s)
        if not self._protocol.endswith("ssl"):
            return plain
        try:
            return _tls_context(self._settings).wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise

    def _received(self, size: int) -> bytes:
        content = b""
        while len(content) < size:
            part = self._socket.recv(size - len(content))
            if not part:
                raise OSError("it closed the connection")
            content += part
        return content

    def _log_in(self) -> None:
        mechanism = str(self._settings.get("sasl.mechanism", self._settings.get("sasl.mechanisms", ""))).upper()
        if mechanism != "PLAIN" and mechanism not in _SCRAM_HASHES:
            raise ConfigError(
                f"Quotas and members cannot be changed with sasl.mechanism={mechanism or 'GSSAPI'}, which only Kafka's "
                "client knows: use `kafka-configs.sh --entity-type clients`, or log in with PLAIN or SCRAM."
            )
        response = self.request(_SASL_HANDSHAKE, 1, Encoder().text(mechanism))
        raise_error(f"{self._servers} refuses the log-in by {mechanism}", response.int16())
        user = str(self._settings.get("sasl.username", ""))
        password = str(self._settings.get("sasl.password", ""))
        if mechanism == "PLAIN":
            self._authenticate(f"\0{user}\0{password}".encode())
        else:
            self._authenticate_by_scram(ScramLogin(_SCRAM_HASHES[mechanism], user, password))

    def _authenticate_by_scram(self, login: ScramLogin) -> None:
        final = login.final_message(self._authenticate(login.first_message()))
        if not login.is_server(self._authenticate(final)):
            raise LogError(f"The broker of {self._servers} does not know the password: it is not trusted.")

    def _authenticate(self, message: bytes) -> bytes:
        response = self.request(_SASL_AUTHENTICATE, 0, Encoder().blob(message))
        code = response.int16()
        raise_error(f"{self._servers} refuses the log-in", code, response.text())
        return response.blob()


class ScramLogin:
    """The messages of a log-in by SCRAM (RFC 5802).

    Parameters
    ----------
    hash_name : str
    user, password : str
    """

    def __init__(self, hash_name: str, user: str, password: str) -> None:
        self._hash = hash_name
        self._password = password.encode()
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._nonce = secrets.token_urlsafe(24)
        self._bare = f"n={name},r={self._nonce}"
        self._signature = b""

    def first_message(self) -> bytes:
        """Return the first message of the client."""
        return f"n,,{self._bare}".encode()

    def final_message(self, server_first: bytes) -> bytes:
        """Return the second message of the client, with the proof that it knows the password."""
        fields = _scram_fields(server_first)
        if not fields.get("r", "").startswith(self._nonce) or not fields.get("i", "").isdecimal():
            raise LogError("A broker answered a log-in by SCRAM with an illegal message.")
        salt = base64.b64decode(fields.get("s", ""))
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, int(fields["i"]))
        client_key = self._hmac(salted, b"Client Key")
        without_proof = f"c=biws,r={fields['r']}"
        signed = f"{self._bare},{server_first.decode()},{without_proof}".encode()
        client_signature = self._hmac(hashlib.new(self._hash, client_key).digest(), signed)
        proof = bytes(key ^ mask for key, mask in zip(client_key, client_signature, strict=True))
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def is_server(self, server_final: bytes) -> bool:
        """Return whether the server knows the password too."""
        signature = base64.b64decode(_scram_fields(server_final).get("v", ""))
        return hmac.compare_digest(signature, self._signature)

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def _scram_fields(message: bytes) -> dict[str, str]:
    return {part[:1]: part[2:] for part in message.decode().split(",")}


def raise_error(failure: str, code: int, message: str | None = None) -> None:
    """Raise the error for an error code of a response. Do nothing for the code 0."""
    if code:
        reason = KafkaError(code)
        raise log_error(failure, KafkaError(code, message) if message else reason)


def _tls_context(settings: Settings) -> ssl.SSLContext:
    for name in ("ssl.keystore.location", "ssl.certificate.pem", "ssl.key.pem"):
        if settings.get(name):
            raise ConfigError(
                f"Quotas and members cannot be changed with {name}, which only Kafka's own client reads: give "
                "ssl.certificate.location and ssl.key.location, or use `kafka-configs.sh --entity-type clients`."
            )
    authorities = settings.get("ssl.ca.location")
    context = ssl.create_default_context(
        cafile=None if authorities in (None, "probe") else str(authorities),
        cadata=None if settings.get("ssl.ca.pem") is None else str(settings["ssl.ca.pem"]),
    )
    if str(settings.get("ssl.endpoint.identification.algorithm", "https")).lower() == "none":
        context.check_hostname = False
    if str(settings.get("enable.ssl.certificate.verification", "true")).lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate := settings.get("ssl.certificate.location"):
        password = settings.get("ssl.key.password")
        context.load_cert_chain(
            str(certificate),
            str(settings.get("ssl.key.location") or certificate),
            None if password is None else str(password),
        )
    return context
