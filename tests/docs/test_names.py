"""Every name and setting that the page for Java users maps to is there."""

from __future__ import annotations

import re

import pytest

import kstreams as ks
from kstreams.config.keys import KEYS
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "migration" / "kafka-streams.md").read_text()
ROWS = [line.split("|")[1:3] for line in PAGE.splitlines() if line.startswith("| `")]
NAMES = sorted({name for _, ours in ROWS for name in re.findall(r"`([A-Z]\w+\.\w+)", ours)})
SETTINGS = sorted(set(re.findall(r"`([a-z]+(?:\.[a-z]+)+)`", PAGE)) - {"kstreams.toml"})


@pytest.mark.parametrize("name", NAMES)
def test_a_method_of_the_map_exists(name: str) -> None:
    owner, method = name.split(".")
    assert hasattr(getattr(ks, owner), method)


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_of_the_map_exists(setting: str) -> None:
    assert setting in KEYS
