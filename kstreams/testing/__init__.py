"""Tests of a topology without topics, threads or waiting: `TopologyTestDriver`.

The names are loaded when they are first asked for: pytest loads this package in every run, as a plugin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kstreams.testing.driver import TopologyTestDriver
    from kstreams.testing.topics import TestInputTopic, TestOutputTopic

__all__ = ["TestInputTopic", "TestOutputTopic", "TopologyTestDriver"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kstreams.testing import driver, topics

    return getattr(driver if name == "TopologyTestDriver" else topics, name)
