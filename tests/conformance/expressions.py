"""The recorded cases with expressions in place of the functions that they name, so that PySpark can say them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

import kstreams as ks
from kstreams.expressions import Expr
from tests.conformance.on_spark import settings_of
from tests.conformance.recorded import FOLDER, Case


def _text(value: Expr) -> Expr:
    return value.cast(str).fill_null("null")


LEFT, RIGHT = ks.left.value, ks.right.value
TEXT = ks.value.cast(str)

EXPRESSIONS: Mapping[str, Mapping[str, Callable[[str], Any]]] = {
    "PREDICATES": {
        "length_gt": lambda limit: ks.value.str.len() > int(limit),
        "starts_with": ks.value.str.starts_with,
        "contains": lambda part: ks.value.str.contains(part, literal=True),
        "key_is": lambda key: ks.key == key,
        "even": lambda _: ks.value % 2 == 0,
        "gt": lambda limit: ks.value > int(limit),
    },
    "VALUE_MAPPERS": {
        "identity": lambda _: ks.value,
        "upper": lambda _: ks.value.str.upper(),
        "append": lambda end: _text(ks.value) + end,
        "prepend_key": lambda _: _text(ks.key) + ":" + _text(ks.value),
        "length": lambda _: ks.value.str.len(),
        "to_string": lambda _: TEXT,
        "add": lambda number: ks.value + int(number),
        "null_if": lambda text: ks.when(text != TEXT).then(ks.value),
    },
    "KEY_MAPPERS": {
        "key": lambda _: ks.key,
        "value": lambda _: TEXT,
        "first_char": lambda _: ks.when(TEXT != "").then(TEXT.str.slice(0, 1)),
        "key_append": lambda end: _text(ks.key) + end,
    },
    "MAPPERS": {
        "swap": lambda _: (ks.value, ks.key),
        "key_to_value": lambda _: (ks.key, ks.key),
        "value_to_key": lambda _: (ks.value, ks.value),
    },
    "JOINERS": {
        "concat": lambda _: _text(LEFT) + "+" + _text(RIGHT),
        "with_key": lambda _: _text(ks.key) + "=" + _text(LEFT) + "+" + _text(RIGHT),
        "left": lambda _: LEFT,
        "null_if_right_missing": lambda _: ks.when(~RIGHT.is_null()).then(_text(LEFT) + "+" + _text(RIGHT)),
    },
}
"""By catalogue of `replay.py` and name of the function: the expression with the same results, from its argument."""


@cache
def _replay() -> ModuleType:
    spec = importlib.util.spec_from_file_location("replay_by_expressions", FOLDER / "replay.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for catalogue, by_name in EXPRESSIONS.items():
        getattr(module, catalogue).update(by_name)
    return module


def application(case: Case) -> Any:
    """The topology of a case by expressions, and the types of its topics."""
    module = _replay()

    class ByExpressions(module.Application):  # type: ignore[misc, name-defined]
        def on_map_values(self, node: Any, x: Any, _: Any) -> Any:
            store = self.result(node) if node.get("store") else {}
            return x.map_values(module.named(module.VALUE_MAPPERS, node["fn"]), **self.name(node), **store)

        def join(self, method: Any, node: Any, x: Any, y: Any) -> Any:
            joiner = module.named(module.JOINERS, node["joiner"])
            if isinstance(x, ks.KTable):
                return method(y, joiner, **self.result(node) if node.get("store") else {})
            if isinstance(y, ks.GlobalKTable):
                return method(y, joiner, key_selector=module.named(module.KEY_MAPPERS, node["fn"]))
            of_sides = {"key": node["kt"], "value": node["lt"], "other_value": node["rt"]}
            types = {name: module.TYPES[kind] for name, kind in of_sides.items()} | self.name(node)
            if isinstance(y, ks.KTable):
                return method(y, joiner, **types, **({"grace": node["grace_ms"]} if "grace_ms" in node else {}))
            windows = ks.JoinWindows(before=node["before_ms"], after=node["after_ms"], grace=node.get("grace_ms", 0))
            return method(
                y, joiner, windows=windows, **types, **({"store_name": node["store"]} if node.get("store") else {})
            )

    return ByExpressions(case, settings_of(case))
