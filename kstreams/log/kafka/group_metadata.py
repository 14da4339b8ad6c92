"""Metadata of a group's member, as Kafka's client writes it and takes it.

The client hands it out as bytes that it alone has to understand. They hold no more than `GroupMetadata` does: so that
stays a value on every home, and what cannot be written back byte for byte is refused.
"""

from __future__ import annotations

import sys

from kstreams.errors import LogError
from kstreams.log.api import GroupMetadata

_FORMAT = b"CGMDv2:"
_GENERATION_BYTES = 4


def read_metadata(raw: bytes) -> GroupMetadata:
    """What the client's bytes say; LogError for those of a client that writes others.

    Examples
    --------
    >>> read_metadata(metadata_bytes(GroupMetadata("readers", "a-1", 7)))
    GroupMetadata(group='readers', member='a-1', generation=7, instance=None)
    """
    start = len(_FORMAT) + _GENERATION_BYTES
    generation = int.from_bytes(raw[len(_FORMAT) : start], sys.byteorder, signed=True)
    group, _, rest = raw[start:].partition(b"\0")
    member, _, instance = rest.partition(b"\0")
    named = instance[1:-1].decode() if instance[:1] == b"\0" else None
    found = GroupMetadata(group.decode(), member.decode(), generation, named)
    if metadata_bytes(found) != raw:
        raise LogError(
            "This version of confluent-kafka writes the metadata of groups in a form that is not known: install the "
            "version that kstreams was tested with (`pip install 'kstreams-dsl[kafka]'`)."
        )
    return found


def metadata_bytes(metadata: GroupMetadata) -> bytes:
    """The metadata as the client takes it."""
    generation = metadata.generation.to_bytes(_GENERATION_BYTES, sys.byteorder, signed=True)
    instance = b"\1" if metadata.instance is None else b"\0" + metadata.instance.encode() + b"\0"
    return b"\0".join([_FORMAT + generation + metadata.group.encode(), metadata.member.encode(), instance])
