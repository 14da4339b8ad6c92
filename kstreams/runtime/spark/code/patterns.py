"""Regular expressions of Python as patterns of Java with the same matches, where there are any.

The pattern is parsed by Python and written anew from characters, sets, groups, alternatives and repetitions, whose
meaning is the same in both languages.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from re import _constants as sre  # type: ignore[attr-defined]  # the parser of `re` has no public name
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from kstreams.runtime.spark.code.unsayable import Unsayable

_FLAGS = re.UNICODE | re.ASCII | re.DOTALL | re.VERBOSE
_OF_ASCII = {
    sre.CATEGORY_DIGIT: "0-9",
    sre.CATEGORY_WORD: "a-zA-Z0-9_",
    sre.CATEGORY_SPACE: r" \t\n\r\f\x0B",
    sre.CATEGORY_NOT_DIGIT: "^0-9",
    sre.CATEGORY_NOT_WORD: "^a-zA-Z0-9_",
    sre.CATEGORY_NOT_SPACE: r"^ \t\n\r\f\x0B",
}
_NEGATED = (sre.CATEGORY_NOT_DIGIT, sre.CATEGORY_NOT_WORD, sre.CATEGORY_NOT_SPACE)
_GROUP = re.compile(r"\\(?:([1-9])(?!\d)|g<(\d+)>)")


def java_pattern(pattern: str, *, reads_groups: bool = False) -> str:
    """Return the pattern of Java that matches what a pattern of Python matches.

    Parameters
    ----------
    pattern : str
    reads_groups : bool
        True if groups of matches are read: each group must then be a part of every match.

    Raises
    ------
    Unsayable
        If the languages differ.

    Examples
    --------
    >>> java_pattern("(?a)user=([^;]+)")
    'user=([^;]+)'
    >>> java_pattern("[a-f]{2,}|x.y")
    '(?:[a-f]{2,}|x[^\\\\n]y)'
    """
    return _Writer(pattern, reads_groups).written()


def java_replacement(pattern: str, value: str) -> str:
    """Return the replacement of Java for a replacement of Python. Raises Unsayable for escapes other than groups.

    Examples
    --------
    >>> java_replacement("(a)", r"\\1$")
    '$1\\\\$'
    """
    if re.compile(pattern).match("") or _parser.parse(pattern).getwidth()[0] == 0:
        raise Unsayable(f"the pattern {pattern!r} matches empty texts, between which Java and Python differ")
    rest = _GROUP.sub("", value)
    if "\\" in rest:
        raise Unsayable(f"the replacement {value!r} has escapes, which Java reads otherwise")
    parts = []
    at = 0
    for match in _GROUP.finditer(value):
        parts += [_quoted(value[at : match.start()]), f"${match[1] or match[2]}"]
        at = match.end()
    following = value[at:]
    if at and following[:1].isdigit():
        raise Unsayable(f"the replacement {value!r} has a digit after a group, which Java reads as its number")
    return "".join([*parts, _quoted(following)])


def _quoted(text: str) -> str:
    return text.replace("$", "\\$")


class _Writer:
    """Writes one pattern."""

    def __init__(self, pattern: str, reads_groups: bool) -> None:
        self._pattern = pattern
        self._reads_groups = reads_groups
        self._tree = _parser.parse(pattern)
        flags = self._tree.state.flags
        if flags & ~_FLAGS:
            raise self._differs("has flags")
        self._is_ascii = bool(flags & re.ASCII)
        self._any = r"(?s:.)" if flags & re.DOTALL else r"[^\n]"

    def written(self) -> str:
        return self._sequence(self._tree, is_certain=True)

    def _differs(self, problem: str) -> Unsayable:
        return Unsayable(f"the pattern {self._pattern!r} {problem}, which Java reads otherwise")

    def _sequence(self, items: Any, *, is_certain: bool) -> str:
        return "".join(self._item(kind, argument, is_certain) for kind, argument in items)

    def _item(self, kind: Any, argument: Any, is_certain: bool) -> str:
        rule = _RULES.get(kind)
        if rule is None:
            raise self._differs(f"has {str(kind).lower().replace('_', ' ')}")
        return rule(self, argument, is_certain)

    def literal(self, code: int, is_certain: bool) -> str:
        return _character(code)

    def other_than(self, code: int, is_certain: bool) -> str:
        return f"[^{_character(code)}]"

    def any(self, _: None, is_certain: bool) -> str:
        return self._any

    def characters(self, items: list[tuple[Any, Any]], is_certain: bool) -> str:
        is_negated = items[0][0] is sre.NEGATE
        members = items[1:] if is_negated else items
        if len(members) > 1 and any(argument in _NEGATED for kind, argument in members if kind is sre.CATEGORY):
            raise self._differs("has a class in a set")
        if is_negated and members[0][1] in _NEGATED:
            raise self._differs("has a class in a set")
        return f"[{'^' if is_negated else ''}{''.join(self._member(kind, argument) for kind, argument in members)}]"

    def _member(self, kind: Any, argument: Any) -> str:
        if kind is sre.LITERAL:
            return _character(argument)
        if kind is sre.RANGE:
            return f"{_character(argument[0])}-{_character(argument[1])}"
        if not self._is_ascii:
            raise self._differs("has a class of all scripts (write (?a) before it for ASCII)")
        return _OF_ASCII[argument]

    def alternatives(self, argument: Any, is_certain: bool) -> str:
        _, branches = argument
        return f"(?:{'|'.join(self._sequence(branch, is_certain=False) for branch in branches)})"

    def group(self, argument: Any, is_certain: bool) -> str:
        number, added, removed, items = argument
        if added or removed:
            raise self._differs("has flags in a group")
        if number is not None and self._reads_groups and not is_certain:
            raise self._differs("has a group that is not in every match")
        start = "(?:" if number is None else "("
        return f"{start}{self._sequence(items, is_certain=is_certain)})"

    def repeated(self, argument: Any, is_certain: bool) -> str:
        least, most, items = argument
        if items.getwidth()[0] == 0:
            raise self._differs("repeats what may be empty")
        inner = self._sequence(items, is_certain=False)
        is_single = len(items) == 1 and items[0][0] in _SINGLE
        return f"{inner if is_single else f'(?:{inner})'}{_times(least, most)}"

    def repeated_lazily(self, argument: Any, is_certain: bool) -> str:
        return f"{self.repeated(argument, is_certain)}?"

    def at(self, place: Any, is_certain: bool) -> str:
        if place in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
            return r"\A"
        if place is sre.AT_END_STRING:
            return r"\z"
        if place is sre.AT_END:
            return r"(?=\n?\z)"
        raise self._differs("has a boundary of words")


def _times(least: int, most: Any) -> str:
    if most is sre.MAXREPEAT:
        return {0: "*", 1: "+"}.get(least, f"{{{least},}}")
    if (least, most) == (0, 1):
        return "?"
    return f"{{{least}}}" if least == most else f"{{{least},{most}}}"


def _character(code: int) -> str:
    character = chr(code)
    if not character.isascii() or not character.isprintable():
        return f"\\x{{{code:X}}}" if character != "\n" else r"\n"
    return character if character.isalnum() or character in _PLAIN else f"\\{character}"


_PLAIN = " _=;:,/@%'\"<>!~`"
_SINGLE = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)
_RULES: dict[Any, Callable[[_Writer, Any, bool], str]] = {
    sre.LITERAL: _Writer.literal,
    sre.NOT_LITERAL: _Writer.other_than,
    sre.ANY: _Writer.any,
    sre.IN: _Writer.characters,
    sre.BRANCH: _Writer.alternatives,
    sre.SUBPATTERN: _Writer.group,
    sre.MAX_REPEAT: _Writer.repeated,
    sre.MIN_REPEAT: _Writer.repeated_lazily,
    sre.AT: _Writer.at,
}
