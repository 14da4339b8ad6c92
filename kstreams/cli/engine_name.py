"""The engines by name."""

from enum import StrEnum


class EngineName(StrEnum):
    """What runs a topology."""

    NATIVE = "native"
    SPARK = "spark"
