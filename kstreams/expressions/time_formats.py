"""The texts of times: formats of `strftime` whose results depend on neither platform nor locale."""

from __future__ import annotations

import re

_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_FIELDS = {
    "Y": ("{0.year:04}", "yyyy"),
    "m": ("{0.month:02}", "MM"),
    "d": ("{0.day:02}", "dd"),
    "H": ("{0.hour:02}", "HH"),
    "M": ("{0.minute:02}", "mm"),
    "S": ("{0.second:02}", "ss"),
    "f": ("{0.microsecond:06}", "SSSSSS"),
    "j": ("{1:03}", "DDD"),
}
"""For each directive, the field of Python's `format` and the letters of a pattern of Java."""


def check_format(format: str) -> str:
    """Return a format; raise ValueError if it has other directives.

    Examples
    --------
    >>> check_format("%d.%m.%Y")
    '%d.%m.%Y'
    """
    for directive in _DIRECTIVE.findall(format):
        if directive not in (*_FIELDS, "%"):
            raise ValueError(f"dt.to_string takes {' '.join(f'%{name}' for name in _FIELDS)} and %%, not %{directive}")
    return format


def python_format(format: str) -> str:
    """Return a format as a template of `str.format`, of the time and the day of the year.

    Examples
    --------
    >>> from datetime import datetime
    >>> python_format("%d.%m.").format(datetime(2024, 2, 9), 40)
    '09.02.'
    """
    escaped = format.replace("{", "{{").replace("}", "}}")
    return _DIRECTIVE.sub(lambda match: "%" if match[1] == "%" else _FIELDS[match[1]][0], escaped)


def java_format(format: str) -> str:
    """Return a format as a pattern of `java.time.format.DateTimeFormatter`.

    Examples
    --------
    >>> java_format("%Y-%m-%d at %H")
    "yyyy'-'MM'-'dd' at 'HH"
    """
    parts = []
    at = 0
    for match in _DIRECTIVE.finditer(format):
        parts += [("text", format[at : match.start()]), ("text", "%") if match[1] == "%" else ("field", match[1])]
        at = match.end()
    parts.append(("text", format[at:]))
    return "".join(_FIELDS[part][1] if kind == "field" else _quoted(part) for kind, part in parts if part)


def _quoted(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"
