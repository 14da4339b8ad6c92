"""The settings of an application: Kafka Streams' keys, from code, environment and file, checked and typed."""

from kstreams.config.config import Config, is_secret
from kstreams.config.keys import KEYS, PREFIXES, Key

__all__ = ["KEYS", "PREFIXES", "Config", "Key", "is_secret"]
