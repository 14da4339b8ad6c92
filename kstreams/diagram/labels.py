"""Labels of nodes: generated names in words, and the width of texts."""

from __future__ import annotations

import re
from unicodedata import east_asian_width

_GENERATED = re.compile(r"K(?:STREAM|TABLE)-(?P<kind>.+?)-0*(?P<number>\d+)(?P<rest>-.+)?")
_STATE = re.compile(r"(?P<topic>.+)-STATE-STORE-\d{10}")
_WORDS = {
    "DROPHEADERS": "drop headers",
    "FLATMAP": "flat map",
    "FLATMAPVALUES": "flat map values",
    "FK-JOIN": "foreign-key join",
    "JOINTHIS": "join, left side",
    "JOINOTHER": "join, right side",
    "KEY-SELECT": "select key",
    "LEFTJOIN": "left join",
    "MAPHEADERS": "map headers",
    "MAPVALUES": "map values",
    "OUTEROTHER": "outer join, right side",
    "OUTERTHIS": "outer join, left side",
    "OUTERSHARED": "outer join, shared",
    "TOSTREAM": "to stream",
    "TOTABLE": "to table",
    "WITHHEADERS": "with headers",
}
_WIDTHS = {"ijl.,:;'|!()[]ft": 0.34, "mwMW@%": 0.88, "-r /": 0.40}
_BY_LETTER = {letter: width for letters, width in _WIDTHS.items() for letter in letters}
_LONGEST = 36


def short_label(name: str) -> str:
    """Return a generated name in words, or another name unchanged. Long names are shortened in the middle.

    Examples
    --------
    >>> short_label("KSTREAM-MAPVALUES-0000000007"), short_label("KSTREAM-JOINTHIS-0000000023-store")
    ('map values 7', 'join, left side 23 store')
    >>> short_label("delays-by-airline"), short_label("x" * 99)
    ('delays-by-airline', 'xxxxxxxxxxxxxxxxxx…xxxxxxxxxxxxxxxxx')
    """
    name = _STATE.sub(r"\g<topic>", name)
    match = _GENERATED.fullmatch(name)
    if match is not None:
        kind = match["kind"]
        suffix = (match["rest"] or "").replace("-", " ").lower()
        kind = "TABLE" if name.startswith("KTABLE-SOURCE-") else kind
        name = f"{_WORDS.get(kind, kind.replace('-', ' ').lower())} {match['number']}{suffix}"
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST // 2]}…{name[1 - _LONGEST // 2 :]}"


def text_width(text: str, size: float) -> float:
    """Estimate the width of a text in a sans-serif font of this size.

    Examples
    --------
    >>> text_width("mill", 10) < text_width("nnnn", 10) < text_width("WWWW", 10) < text_width("日本語圏", 10)
    True
    """
    return size * sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    if east_asian_width(letter) in "WF":
        return 1.0  # also emoji
    return _BY_LETTER.get(letter, 0.68 if letter.isupper() else 0.57)
