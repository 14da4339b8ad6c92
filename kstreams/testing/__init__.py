"""Test tools: run a topology without topics, threads or waiting, or a processor alone.

The names are loaded when they are first used, because pytest loads this package in every run, as a plugin.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kstreams.testing.driver import TopologyTestDriver
    from kstreams.testing.mock_context import CapturedForward, CapturedPunctuator, MockProcessorContext
    from kstreams.testing.topics import TestInputTopic, TestOutputTopic

_HOMES = {
    "CapturedForward": "mock_context",
    "CapturedPunctuator": "mock_context",
    "MockProcessorContext": "mock_context",
    "TestInputTopic": "topics",
    "TestOutputTopic": "topics",
    "TopologyTestDriver": "driver",
}

__all__ = [
    "CapturedForward",
    "CapturedPunctuator",
    "MockProcessorContext",
    "TestInputTopic",
    "TestOutputTopic",
    "TopologyTestDriver",
]


def __getattr__(name: str) -> Any:
    from kstreams.own_files import require_own

    require_own()
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
