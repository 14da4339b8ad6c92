"""Every node type of kstreams is registered, for both engines, once."""

from __future__ import annotations

import sys

import pytest

import kstreams.dsl.rules
import kstreams.runtime.spark.code.forms  # noqa: F401 (registers the forms on Spark)
from kstreams.dsl.graph import Filter, Node
from kstreams.dsl.operator import OperatorDescriptor, OperatorRegistry, operators, register
from kstreams.errors import UnsupportedError


def node_types(kind=Node):
    """All kinds of nodes. A dataclass with slots is made twice: the one that its module does not know is a shell."""
    for child in kind.__subclasses__():
        if child.__module__.startswith("kstreams.") and getattr(sys.modules[child.__module__], child.__name__) is child:
            yield child
            yield from node_types(child)


NODE_TYPES = list(node_types())


@pytest.mark.parametrize("node_type", NODE_TYPES, ids=lambda kind: kind.__name__)
def test_every_node_type_is_registered(node_type):
    assert node_type in operators


@pytest.mark.parametrize("node_type", NODE_TYPES, ids=lambda kind: kind.__name__)
def test_every_node_type_has_a_form_on_spark_or_a_reason_of_its_own(node_type):
    form = operators.of_type(node_type).spark
    assert form.write is not None or form.reason != OperatorDescriptor.__dataclass_fields__["spark"].default.reason


def test_a_node_that_is_not_registered_is_named_with_what_to_do():
    node = Filter(name="keep", declared_at="app.py:7", predicate=lambda k, v: True)
    with pytest.raises(UnsupportedError, match=r"keep \(declared at app.py:7\) is a Filter, which is no registered op"):
        OperatorRegistry().of(node)


def test_a_node_type_is_registered_once():
    with pytest.raises(ValueError, match="Filter is registered already"):
        register(operators.of_type(Filter))
