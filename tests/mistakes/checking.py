"""How a mistake is made and what its answer must be: one sentence or two that name the cure, at the user's line."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import KStreamsError
from kstreams.testing import MockProcessorContext, TopologyTestDriver

ANSWERS = (KStreamsError, TypeError, ValueError, AttributeError, LookupError)


class Plain:
    """A class that nothing can write."""


@dataclass
class Order:
    shop: str
    amount: int


class Nothing(ks.Processor[Any, Any, Any, Any]):
    """A processor that does nothing."""


class Pass(ks.Processor[Any, Any, Any, Any]):
    """A processor that forwards every record."""

    def init(self, context: ks.ProcessorContext[Any, Any]) -> None:
        self.forward = context.forward

    def process(self, record: ks.Record[Any, Any]) -> None:
        self.forward(record)


def names() -> dict[str, Any]:
    """What every mistake finds at hand."""
    builder = ks.StreamsBuilder()
    words = builder.stream("words", key=str, value=str)
    return {
        "ks": ks,
        "builder": builder,
        "words": words,
        "orders": builder.stream("orders", key=str, value=Order),
        "numbers": builder.stream("numbers", key=int, value=int),
        "users": builder.table("users", key=str, value=str),
        "countries": builder.global_table("countries", key=str, value=str),
        "grouped": words.group_by_key(),
        "hour": ks.TimeWindows(size=3_600_000),
        "nearby": ks.JoinWindows.of(1000),
        "Plain": Plain,
        "Order": Order,
        "Nothing": Nothing,
        "Pass": Pass,
        "Driver": TopologyTestDriver,
        "Mock": MockProcessorContext,
        "datetime": datetime,
        "timedelta": timedelta,
        "UTC": UTC,
        "asyncio": asyncio,
    }


def check(code: str, said: str) -> None:
    """Make a mistake, and look at its answer."""
    with pytest.raises(ANSWERS) as caught:
        exec(compile(code, "mistake.py", "exec"), names())
    text = str(caught.value)
    assert said in text, text
    assert_sentence(text)
    assert lines_of(caught), f"no frame of the user: {text}"


def lines_of(caught: pytest.ExceptionInfo[Any]) -> list[int]:
    """The user's lines in a traceback."""
    return [entry.lineno for entry in caught.traceback if entry.path.__str__().endswith("mistake.py")]


def assert_sentence(text: str) -> None:
    """It is a sentence or two, and no stack trace."""
    assert "Traceback" not in text
    assert "please report" not in text
    assert len(re.findall(r"\S+", text)) >= 4, text
    assert len(text) < 700, text
