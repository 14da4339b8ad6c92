"""What happens between an application and a schema registry server: authorization, failures, outages, caches."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from kstreams.config import Config
from kstreams.errors import ConfigError, IncompatibleSchemaError, RegistryError, SchemaNotFoundError
from kstreams.log.schema_registries import registry_of
from kstreams.schemas import Schema, SchemaRegistry
from tests.log.embedded.files import run
from tests.schemas.conftest import QUICK
from tests.support.certificates import Authority, can_make
from tests.support.schema_registry_server import RegistryServer

NUMBER = Schema('"int"')
TEXT = Schema('"string"')


def registry_at(url: str, **settings: object) -> SchemaRegistry:
    return registry_of(Config.of({"schema.registry.url": url, **QUICK}, **settings))


def unused_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


def test_user_and_password_are_sent() -> None:
    expected = "Basic " + base64.b64encode(b"me:tiger").decode()
    with RegistryServer(authorization=expected) as server:
        for registry in (
            registry_at(server.url, schema_registry_basic_auth_user_info="me:tiger"),
            registry_at(server.url, basic_auth_user_info="me:tiger"),
            registry_at(server.url.replace("http://", "http://me:tiger@")),
        ):
            assert registry.register("orders-value", NUMBER).version == 1
            registry.close()


def test_a_token_is_sent() -> None:
    with RegistryServer(authorization="Bearer tiger") as server:
        registry = registry_at(server.url, schema_registry_bearer_auth_token="tiger")
        assert registry.register("orders-value", NUMBER).version == 1
        registry.close()


def test_a_refusal_says_what_to_set_and_shows_no_password() -> None:
    with RegistryServer(authorization="Bearer lion") as server:
        with pytest.raises(RegistryError, match=r"HTTP 401.*schema.registry.basic.auth.user.info"):
            registry_at(server.url).subjects()
        address = server.url.replace("http://", "http://me:tiger@")
        with pytest.raises(RegistryError, match="HTTP 403") as refusal:
            registry_at(address).subjects()
        assert "tiger" not in str(refusal.value)
        assert server.address in str(refusal.value)


def test_a_user_and_a_token_at_once_are_refused() -> None:
    with pytest.raises(ConfigError, match="both set"):
        registry_at("http://localhost:1", basic_auth_user_info="me:tiger", bearer_auth_token="tiger")


@pytest.mark.parametrize("url", ["localhost:8081", "ftp://localhost", "http://localhost:1,localhost:2"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="http://localhost:8081"):
        registry_at(url)


def test_without_a_url_the_error_names_the_setting_and_the_registry_that_needs_no_server() -> None:
    with pytest.raises(ConfigError, match=r"schema.registry.url is not set.*`local:`"):
        registry_of(Config.of())


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_request_that_fails_for_a_while_is_sent_again(server: RegistryServer, status: int) -> None:
    registry = registry_at(server.url)
    server.fail(3, status)
    assert registry.register("orders-value", NUMBER).version == 1
    assert server.requests >= 4
    registry.close()


def test_a_request_that_fails_for_ever_is_an_error_that_names_url_and_subject(server: RegistryServer) -> None:
    registry = registry_at(server.url, schema_registry_max_retries=2)
    server.fail(100)
    with pytest.raises(RegistryError, match="the store is down") as failure:
        registry.register("orders-value", NUMBER)
    assert server.url in str(failure.value)
    assert "'orders-value'" in str(failure.value)
    assert server.requests == 3
    registry.close()


@pytest.mark.parametrize("status", [400, 404, 409, 422])
def test_a_request_that_is_refused_is_not_sent_again(server: RegistryServer, status: int) -> None:
    registry = registry_at(server.url)
    server.fail(1, status, message="no")
    with pytest.raises(RegistryError):
        registry.schema(5)
    assert server.requests == 1
    registry.close()


def test_a_schema_that_the_server_finds_incompatible_has_its_own_error(server: RegistryServer) -> None:
    registry = registry_at(server.url)
    server.fail(1, 409, code=409, message="Schema being registered is incompatible with an earlier schema")
    with pytest.raises(IncompatibleSchemaError, match=r"orders-value.*incompatible with an earlier schema"):
        registry.register("orders-value", NUMBER)
    registry.close()


def test_a_server_that_finds_a_schema_incompatible_is_answered_for_with_reasons(server: RegistryServer) -> None:
    registry = registry_at(server.url)
    registry.register("orders-value", NUMBER)
    server.answer({"is_compatible": False})
    assert registry.incompatibilities("orders-value", TEXT) == [
        "cannot read version 1: (root): int cannot be read as string"
    ]
    server.answer({"is_compatible": False})
    (reason,) = registry.incompatibilities("orders-value", Schema('"long"'))
    assert "does not say why" in reason
    registry.close()


def test_every_schema_is_compatible_with_a_subject_that_is_not_there(server: RegistryServer) -> None:
    registry = registry_at(server.url)
    server.fail(1, 404, code=40401, message="Subject not found")
    assert registry.incompatibilities("orders-value", TEXT) == []
    registry.close()


def test_newer_servers_tell_version_and_guid_at_once(server: RegistryServer) -> None:
    registry = registry_at(server.url)
    guid = "1ad0ae3b-26d1-4cf2-8d41-a1e0ff4b7b4e"
    server.answer({"id": 7, "guid": guid, "version": 3, "schemaType": "AVRO", "schema": NUMBER.text})
    registered = registry.register("orders-value", NUMBER)
    assert (registered.id, registered.guid, registered.version) == (7, guid, 3)
    assert server.requests == 1
    registry.close()


def test_a_server_that_is_not_there_is_named_with_what_was_asked() -> None:
    url = f"http://{unused_address()}"
    registry = registry_at(url, schema_registry_max_retries=1)
    with pytest.raises(RegistryError, match=f"{url} does not answer for the schema with the id 7"):
        registry.schema(7)
    registry.close()


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        registry = registry_at(url, schema_registry_max_retries=1, schema_registry_http_read_timeout_ms=200)
        with pytest.raises(RegistryError, match="does not answer for the schema with the id 7"):
            registry.schema(7)
        registry.close()


def test_what_is_known_goes_on_being_used_while_the_server_is_away(server: RegistryServer) -> None:
    registry = registry_at(server.url, schema_registry_max_retries=0, latest_cache_ttl_sec=0)
    first = registry.register("orders-value", NUMBER)
    by_id, by_guid, newest = (
        registry.schema(first.id),
        registry.schema_of_guid(first.guid),
        registry.version("orders-value"),
    )
    by_version = registry.version("orders-value", 1)
    server.kill()
    assert registry.schema(first.id) == by_id
    assert registry.schema_of_guid(first.guid) == by_guid
    assert registry.register("orders-value", NUMBER) == first
    assert registry.lookup("orders-value", NUMBER) == first
    assert registry.version("orders-value", 1) == by_version
    assert registry.version("orders-value") == newest
    with pytest.raises(RegistryError, match="does not answer"):
        registry.schema(first.id + 1)
    with pytest.raises(RegistryError, match="does not answer"):
        registry.version("returns-value")
    registry.close()


def test_a_server_that_comes_back_in_time_is_not_noticed() -> None:
    address = unused_address()
    registry = registry_at(
        f"http://{address}",
        schema_registry_max_retries=8,
        schema_registry_retries_wait_ms=200,
        schema_registry_retries_max_wait_ms=2000,
    )
    servers: list[RegistryServer] = []
    late = threading.Timer(0.3, lambda: servers.append(RegistryServer(address=address)))
    late.start()
    assert registry.register("orders-value", NUMBER).version == 1
    late.join()
    registry.close()
    servers[0].kill()


def test_of_several_urls_the_next_one_is_asked(server: RegistryServer) -> None:
    registry = registry_at(f"http://{unused_address()},{server.url}", schema_registry_max_retries=0)
    assert registry.register("orders-value", NUMBER).version == 1
    registry.close()


def test_a_schema_is_asked_for_once(server: RegistryServer) -> None:
    registry = registry_at(server.url)
    number = registry.register("orders-value", NUMBER).id
    registry.schema(number)
    server.fail(0)
    for _ in range(3):
        registry.schema(number)
        registry.register("orders-value", NUMBER)
    assert server.requests == 0
    registry.close()


def test_the_newest_version_is_asked_for_again_when_its_time_is_over(server: RegistryServer) -> None:
    patient, eager = registry_at(server.url), registry_at(server.url, latest_cache_ttl_sec=0)
    for registry in (patient, eager):
        registry.register("orders-value", NUMBER)
        assert registry.version("orders-value").version == 1
    other = registry_at(server.url)
    other.register("orders-value", TEXT)
    assert patient.version("orders-value").version == 1
    assert eager.version("orders-value").version == 2
    for registry in (patient, eager, other):
        registry.close()


def test_what_was_deleted_is_not_believed_any_more(server: RegistryServer) -> None:
    registry = registry_at(server.url)
    registry.register("orders-value", NUMBER)
    registry.register("orders-value", TEXT)
    registry.version("orders-value")
    registry.delete("orders-value", 2)
    assert registry.version("orders-value").version == 1
    with pytest.raises(SchemaNotFoundError):
        registry.version("orders-value", 2)
    registry.close()


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>Welcome</html>")

    def log_message(self, *arguments: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def web_page() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_web_page_is_no_schema_registry(web_page: str) -> None:
    registry = registry_at(web_page)
    with pytest.raises(RegistryError, match=f"{web_page} does not answer for the list of subjects"):
        registry.subjects()
    registry.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    if not can_make():
        pytest.skip("certificates are made by openssl: install it")
    return Authority(tmp_path / "authority")


def test_a_server_is_trusted_by_the_authority_that_is_named(authority: Authority) -> None:
    with RegistryServer(certificate=authority.server("IP:127.0.0.1")) as server:
        registry = registry_at(server.url, schema_registry_ssl_ca_location=authority.certificate)
        assert registry.register("orders-value", NUMBER).version == 1
        registry.close()
        stranger = registry_at(server.url, schema_registry_max_retries=0)
        with pytest.raises(RegistryError, match="certificate verify failed"):
            stranger.subjects()
        stranger.close()


def test_a_server_with_the_certificate_of_another_is_refused(authority: Authority) -> None:
    with RegistryServer(certificate=authority.server("DNS:elsewhere")) as server:
        registry = registry_at(
            server.url, schema_registry_ssl_ca_location=authority.certificate, schema_registry_max_retries=0
        )
        with pytest.raises(RegistryError, match="certificate verify failed"):
            registry.subjects()
        registry.close()


def test_a_client_shows_its_certificate(authority: Authority) -> None:
    certificate = authority.server("IP:127.0.0.1")
    with RegistryServer(certificate=certificate, clients=authority.certificate) as server:
        trusting = {"schema_registry_ssl_ca_location": authority.certificate, "schema_registry_max_retries": 0}
        known = registry_at(
            server.url,
            schema_registry_ssl_certificate_location=certificate,
            schema_registry_ssl_key_location=certificate,
            **trusting,
        )
        assert known.subjects() == []
        known.close()
        unknown = registry_at(server.url, **trusting)
        with pytest.raises(RegistryError, match="does not answer"):
            unknown.subjects()
        unknown.close()


def test_a_file_of_certificates_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be made"):
        registry_at("https://localhost:1", schema_registry_ssl_ca_location=tmp_path / "none.pem")


WITHOUT = """
import sys
sys.modules[sys.argv[1]] = None
from kstreams.config import Config
from kstreams.errors import ConfigError, RegistryError
from kstreams.log.schema_registries import registry_of
from kstreams.schemas import Schema
try:
    registry = registry_of(Config.of({"schema.registry.url": sys.argv[2]}))
    registry.register("orders-value", Schema(sys.argv[4], sys.argv[3]))
except (ConfigError, RegistryError) as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("module", "url", "kind", "text", "extra"),
    [
        ("confluent_kafka", "http://localhost:1", "AVRO", '"int"', "registry"),
        ("cachetools", "http://localhost:1", "AVRO", '"int"', "registry"),
        ("fastavro", "local:{folder}", "AVRO", '"int"', "registry"),
        ("jsonschema", "local:{folder}", "JSON", "{}", "registry"),
        ("grpc_tools", "local:{folder}", "PROTOBUF", 'syntax = "proto3"; message A { }', "protobuf"),
    ],
)
def test_a_package_that_is_not_installed_is_named_with_the_extra_that_has_it(
    tmp_path: Path, module: str, url: str, kind: str, text: str, extra: str
) -> None:
    printed = run(WITHOUT, module, url.format(folder=tmp_path), kind, text)
    assert module in printed
    assert f"pip install 'kstreams-dsl[{extra}]'" in printed
