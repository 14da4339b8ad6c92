"""The recorded cases once more, with keys (and values) that cannot be hashed: stores know them by their bytes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance import on_native, on_spark, recorded, test_driver
from tests.conformance.test_driver import FAMILIES
from tests.spark.conftest import spark
from tests.support.unhashable import UnhashableTextSerde, as_plain

__all__ = ["spark"]  # the fixture: one session for all tests

pytestmark = recorded.needed


@pytest.fixture(autouse=True)
def unhashable_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Topologies whose texts cannot be hashed; what comes out of them is read as plain texts, to be compared."""
    replay = recorded.replay()

    class Application(replay.Application):  # type: ignore[misc, name-defined]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            for types in self.outputs.values():
                types |= {side: as_plain(kind) for side, kind in types.items()}

    monkeypatch.setitem(replay.TYPES, "string", UnhashableTextSerde())
    monkeypatch.setattr(replay, "Application", Application)


@pytest.mark.parametrize("batch", [None, 7])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_sample_on_the_driver(family: str, batch: int | None) -> None:
    assert test_driver.failures(family, batch, every=15) == {}


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("family", FAMILIES[::3])
def test_a_sample_natively(family: str, cached: bool) -> None:
    case = recorded.cases(family)[3]
    assert not on_native.differs(case, cached=cached)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [None, 7, 100])
@pytest.mark.parametrize("family", FAMILIES)
def test_all_cases_on_the_driver(family: str, batch: int | None) -> None:
    assert test_driver.failures(family, batch) == {}


@pytest.mark.slow
@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_more_cases_natively(family: str, cached: bool) -> None:
    cases = recorded.cases(family)[cached::5]
    assert [case["name"] for case in cases if on_native.differs(case, cached=cached)] == []


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("most", [on_spark.WHOLE, 7], ids=["whole", "sevens"])
def test_a_sample_on_spark(spark, most: int) -> None:
    cases = [case for family in FAMILIES for case in recorded.cases(family)[1::13]]
    assert on_spark.differing(spark, cases, most) == []
