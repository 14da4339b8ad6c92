"""Functions and types of the user's own modules travel by value."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple, TypedDict

import msgspec
import pytest

from kstreams.errors import TopologyError
from kstreams.runtime.spark.cluster.shipping import pack, unpack
from kstreams.serdes import serde_of

pytestmark = pytest.mark.spark


class Point(msgspec.Struct, frozen=True, rename="camel"):
    x: int
    y_axis: int = 0
    tags: list[str] = []

    def doubled(self) -> Point:
        return Point(self.x * 2, self.y_axis * 2)

    @classmethod
    def origin(cls) -> Point:
        return cls(0)


class Named(Point, kw_only=True):
    name: str


class Colour(Enum):
    RED = 1


@dataclass
class Pixel:
    point: Point
    colour: Colour = Colour.RED


def paint(x: int) -> Pixel:
    return Pixel(Point(x).doubled())


def elsewhere(thing: object, expression: str, tmp_path: Path) -> str:
    """What an expression of `thing` gives in a process that cannot import this module."""
    (tmp_path / "packed").write_bytes(pack(thing))
    script = f"""
import sys
sys.path[:] = [path for path in sys.path if path]
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from kstreams.runtime.spark.cluster.shipping import unpack
sys.modules["tests"] = None
thing = unpack(open({str(tmp_path / "packed")!r}, "rb").read())
print({expression})
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_a_function_takes_what_it_refers_to_along(tmp_path: Path) -> None:
    shown = "Pixel(point=Point(x=6, y_axis=0, tags=[]), colour=<Colour.RED: 1>)"
    assert elsewhere(paint, "thing(3)", tmp_path) == shown


def test_a_struct_keeps_methods_defaults_names_and_its_base(tmp_path: Path) -> None:
    assert elsewhere(Point, "thing.origin().doubled() == thing(0)", tmp_path) == "True"
    assert elsewhere(Named, "thing(1, name='n')", tmp_path) == "Named(x=1, y_axis=0, tags=[], name='n')"


def test_a_serde_of_a_struct_reads_and_writes_the_same_bytes(tmp_path: Path) -> None:
    shown = elsewhere(serde_of(Point), 'thing.serialize(thing.deserialize(b\'{"x":1,"yAxis":2}\'))', tmp_path)
    assert shown == """b'{"x":1,"yAxis":2,"tags":[]}'"""


class Size(NamedTuple):
    width: int


class Paint(TypedDict):
    colour: Colour
    size: Size


@dataclass
class Bucket:
    paint: Paint


def test_types_that_a_serde_has_met_before_are_sent_too(tmp_path: Path) -> None:
    serde = serde_of(Bucket)
    written = serde.serialize(Bucket({"colour": Colour.RED, "size": Size(2)}))
    assert serde.deserialize(written).paint["size"].width == 2
    assert elsewhere(serde, f"thing.deserialize({written!r}).paint['size'].width", tmp_path) == "2"


def test_a_module_of_the_user_may_have_two_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "another_name_of_these_tests", sys.modules[__name__])
    assert unpack(pack(Point.origin))().y_axis == 0


def test_the_same_bytes_give_the_same_object_as_long_as_the_process_lives() -> None:
    packed = pack(lambda: 1)
    assert unpack(packed) is unpack(packed)


def test_what_exists_in_one_process_only_is_refused_with_advice() -> None:
    lock = threading.Lock()
    with pytest.raises(TopologyError, match=r"cannot be sent to Spark's workers: .*lock.*create it inside"):
        pack(lambda: lock)
