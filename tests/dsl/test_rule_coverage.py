"""Every node type has a rule or a declared reason for every target, and says how types flow."""

from __future__ import annotations

import sys

import pytest

import kstreams.dsl.rules  # noqa: F401 (fills the rule books)
from kstreams.dsl.analysis.types import types
from kstreams.dsl.graph import Filter, Node
from kstreams.dsl.lowering import topology
from kstreams.dsl.rule_book import RuleBook
from kstreams.errors import UnsupportedError


def node_types(kind=Node):
    """All kinds of nodes. A dataclass with slots is made twice: the one that its module does not know is a shell."""
    for child in kind.__subclasses__():
        if getattr(sys.modules[child.__module__], child.__name__) is child:
            yield child
            yield from node_types(child)


NODE_TYPES = list(node_types())


@pytest.mark.parametrize("book", [topology, types], ids=lambda book: book.target)
@pytest.mark.parametrize("node_type", NODE_TYPES, ids=lambda kind: kind.__name__)
def test_every_node_type_is_covered(book, node_type):
    assert book.covers(node_type), f"{book.target} has neither a rule nor a declaration for {node_type.__name__}"


def test_what_is_declared_unsupported_is_refused_with_its_reason():
    book = RuleBook("the moon")
    book.declare_unsupported(Filter, "there is no water")
    node = Filter(name="keep", declared_at="app.py:7", predicate=lambda k, v: True)
    with pytest.raises(
        UnsupportedError, match=r"keep \(declared at app.py:7\) cannot run on the moon, because there is"
    ):
        book.rule_for(node)
    assert book.unsupported == {Filter: "there is no water"}


def test_a_node_type_has_one_rule():
    book = RuleBook("the moon")
    book.rule(Filter)(lambda node: node)
    with pytest.raises(ValueError, match="already has a rule"):
        book.declare_unsupported(Filter, "twice")
