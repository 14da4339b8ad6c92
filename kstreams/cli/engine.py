"""The engines by name."""

from enum import StrEnum


class Engine(StrEnum):
    """What runs a topology."""

    NATIVE = "native"
    SPARK = "spark"
