"""The settings of an application, typed and checked: keys of Kafka Streams from code, environment and file."""

from kstreams.config.config import Config, MemoryShares, is_secret, masked, without_passwords
from kstreams.config.key import Key
from kstreams.config.keys import KEYS, PREFIXES

__all__ = ["KEYS", "PREFIXES", "Config", "Key", "MemoryShares", "is_secret", "masked", "without_passwords"]
