"""Subscriptions and responses of foreign-key joins are the bytes of Kafka Streams, and damaged ones are refused."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kstreams.errors import SerdeError
from kstreams.processor.operators.joins.foreign_key_join import hash128
from kstreams.serdes import StringSerde
from kstreams.serdes.subscriptions import (
    Instruction,
    ResponseSerde,
    Subscription,
    SubscriptionResponse,
    SubscriptionSerde,
)

SUBSCRIPTIONS, RESPONSES = SubscriptionSerde(StringSerde()), ResponseSerde(StringSerde())
hashes = st.none() | st.binary(min_size=16, max_size=16)


@given(st.builds(Subscription, hashes, st.sampled_from(Instruction), st.text(max_size=5), st.integers(0, 2**31 - 1)))
def test_a_subscription_comes_back_as_it_was(subscription):
    assert SUBSCRIPTIONS.deserialize(SUBSCRIPTIONS.serialize(subscription)) == subscription


@given(st.builds(SubscriptionResponse, hashes, st.none() | st.text(min_size=1, max_size=5), st.none()))
def test_a_response_comes_back_as_it_was(response):
    assert RESPONSES.deserialize(RESPONSES.serialize(response)) == response


def test_the_bytes_of_a_subscription():
    row_hash = bytes(range(16))
    asked = Subscription(row_hash, Instruction.PROPAGATE_ONLY_IF_MATCH, "pk", 2)
    assert SUBSCRIPTIONS.serialize(asked) == b"\x01\x03" + row_hash + b"pk\x00\x00\x00\x02"


def test_the_bytes_of_a_response():
    row_hash = bytes(range(16))
    assert RESPONSES.serialize(SubscriptionResponse(row_hash, "row", partition=3)) == b"\x00" + row_hash + b"row"
    assert RESPONSES.serialize(SubscriptionResponse(None, None)) == b"\x80"


@pytest.mark.parametrize("data", [b"", b"\x01\x00\x00", b"\x07\x00pk\x00\x00\x00\x00", b"\x81\x09k\x00\x00\x00\x00"])
def test_damaged_subscriptions_are_refused(data):
    with pytest.raises(SerdeError, match="a subscription"):
        SUBSCRIPTIONS.deserialize(data)


@pytest.mark.parametrize("data", [b"", b"\x00short", b"\x05"])
def test_damaged_responses_are_refused(data):
    with pytest.raises(SerdeError, match="a response"):
        RESPONSES.deserialize(data)


def test_the_hash_is_murmur3():
    """The check that its author published: hashes of 256 keys, each with another seed, hashed together."""
    hashes = b"".join(little_endian(hash128(bytes(range(length)), seed=256 - length)) for length in range(256))
    assert little_endian(hash128(hashes, seed=0))[:4] == (0x6384BA69).to_bytes(4, "little")


def little_endian(data):
    return struct.pack("<QQ", *struct.unpack(">QQ", data))
