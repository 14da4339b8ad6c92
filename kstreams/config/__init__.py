"""The settings of an application: Kafka Streams' keys, from code, environment and file, checked and typed."""

from kstreams.config.config import Config, MemoryShares, is_secret, masked, without_passwords
from kstreams.config.key import Key
from kstreams.config.keys import KEYS, PREFIXES

__all__ = ["KEYS", "PREFIXES", "Config", "Key", "MemoryShares", "is_secret", "masked", "without_passwords"]
