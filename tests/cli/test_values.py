"""How bytes are shown and text becomes bytes."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kstreams.errors import SerdeError
from kstreams.serdes.byte_kinds import decoder, encode_json, encoder

auto = decoder("auto")


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (None, None),
        (b'{"a":1}', {"a": 1}),
        (b"[1,2]", [1, 2]),
        (b"{not json", "{not json"),
        (b"42", "42"),
        ("Zürich\n".encode(), "Zürich\n"),
        (b"\xff", {"base64": "/w=="}),
        (bytes(8), {"base64": "AAAAAAAAAAA="}),
    ],
)
def test_auto_shows_objects_as_json_and_printable_utf8_as_text(data, shown):
    assert auto(data) == shown


@pytest.mark.parametrize(
    ("kind", "text", "data"),
    [
        ("text", "7", b"7"),
        ("int", "7", bytes(7) + b"\x07"),
        ("float", "1.5", b"\x3f\xf8" + bytes(6)),
        ("json", '{"a": [1]}', b'{"a":[1]}'),
        ("bytes", "AAE=", b"\x00\x01"),
    ],
)
def test_text_becomes_the_bytes_of_the_serde(kind, text, data):
    assert encoder(kind)(text.encode()) == data


@pytest.mark.parametrize(("kind", "text"), [("int", "x"), ("json", "{"), ("bytes", "*")])
def test_text_that_does_not_fit_is_an_error_that_shows_it(kind, text):
    with pytest.raises(SerdeError, match="cannot be read as"):
        encoder(kind)(text.encode())


def test_bytes_that_do_not_fit_are_an_error():
    with pytest.raises(SerdeError, match="8 bytes"):
        decoder("int")(b"abc")


@given(st.none() | st.binary())
def test_what_auto_shows_can_be_produced_again(data):
    """`consume --json | produce --json` copies a topic: the bytes come back, JSON in its shortest spelling."""
    shown = auto(data)
    back = encode_json(msgspec.json.decode(msgspec.json.encode(shown)), "auto")
    assert auto(back) == shown
    if isinstance(shown, str | None):
        assert back == data
