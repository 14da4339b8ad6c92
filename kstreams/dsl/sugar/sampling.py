"""Sampling: a share of all keys, the same ones in every run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.kernel.murmur2 import murmur2
from kstreams.serdes import Serde


def in_sample(
    fraction: float, seed: int, part: Callable[[Any, Any], Any] | None, serde: Serde[Any]
) -> Callable[[Any, Any], bool]:
    """Whether a record is in the sample: its key is, or what `part(key, value)` takes of it.

    Examples
    --------
    >>> from kstreams.serdes import serde_of
    >>> keep = in_sample(0.25, 0, None, serde_of(str))
    >>> sum(keep(str(number), None) for number in range(1_000))
    246
    """
    below = int(fraction * 2**32)
    salt = seed.to_bytes(8, "big", signed=True)
    serialize = serde.serialize

    def keep(key: Any, value: Any) -> bool:
        sampled = key if part is None else part(key, value)
        return murmur2(salt + (b"" if sampled is None else serialize(sampled))) < below

    return keep
