"""Whether texts and fields stand out enough from what is behind them, light and dark (WCAG 2.2, AA)."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from kstreams.diagram.svg import stylesheet

TEXT, FIELD = 4.5, 3.0
ON_THE_PAGE = {
    "text": ("ground", "raised"), "faint": ("ground", "raised"), "accent": ("ground", "raised"), "good": ("ground",),
    "warn": ("ground", "raised", "topic", "store"), "wrong": ("ground", "raised"), "on-accent": ("accent",),
}  # fmt: skip
IN_THE_PICTURE = {
    "ink": ("topic", "store", "step", "end"), "soft": ("topic", "store", "step", "end", "box"),
    "live": ("box", "paper"), "bad": ("step", "end", "store"),
}  # fmt: skip


def colours(is_dark: bool) -> dict[str, str]:
    """The colours of the page and of the picture, by name."""
    found: dict[str, str] = {}
    for text in (files("kstreams.server.ui").joinpath("files/page.css").read_text(), stylesheet()):
        light, dark = text.split("@media (prefers-color-scheme: dark)", 1)
        found |= re.findall(r"--([\w-]+): (#\w{6})", light + (dark if is_dark else ""))
    return found


def luminance(colour: str) -> float:
    """How bright a colour is, from 0 to 1."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """From 1 (the same) to 21 (black on white)."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("is_dark", [False, True])
def test_texts_and_fields_stand_out(is_dark: bool) -> None:
    found = colours(is_dark)
    pairs = {
        (front, behind): TEXT for front, grounds in (ON_THE_PAGE | IN_THE_PICTURE).items() for behind in grounds
    } | {("field", "ground"): FIELD, ("field", "raised"): FIELD, ("focus", "ground"): FIELD, ("focus", "box"): FIELD}
    ratios = {pair: contrast(*(found[name] for name in pair)) for pair in pairs}
    assert {pair: ratio for pair, ratio in ratios.items() if ratio < pairs[pair]} == {}
