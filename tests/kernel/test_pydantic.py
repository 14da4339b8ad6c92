"""Pydantic models are types of keys and values, by their own JSON; plain classes are not."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import dataclass

import pytest
from pydantic import BaseModel, Field

import kstreams as ks
from kstreams.errors import SerdeError, TopologyError
from kstreams.serdes import serde_of
from kstreams.testing import TopologyTestDriver


class Order(BaseModel, frozen=True):
    shop: str
    amount: int = Field(alias="amountInCents")


class Plain:
    pass


@dataclass
class Reference:
    plain: Plain


ORDER = Order(shop="a", amountInCents=5)


@pytest.mark.parametrize(
    ("kind", "value", "data"),
    [
        (Order, ORDER, b'{"shop":"a","amountInCents":5}'),
        (list[Order], [ORDER], b'[{"shop":"a","amountInCents":5}]'),
        (dict[str, Order], {"k": ORDER}, b'{"k":{"shop":"a","amountInCents":5}}'),
    ],
    ids=str,
)
def test_what_is_written_is_read_again(kind, value, data):
    serde = serde_of(kind)
    assert serde.serialize(value) == data
    assert serde.deserialize(data) == value
    assert pickle.loads(pickle.dumps(serde)) == serde


@pytest.mark.parametrize("wrong", [{"shop": "a"}, "text", Plain()], ids=["a dict", "a text", "an object"])
def test_what_is_no_model_is_not_written(wrong):
    with pytest.raises(SerdeError, match=r"is no Order: make one, as Order\(\.\.\.\)"):
        serde_of(Order).serialize(wrong)


def test_what_does_not_fit_the_model_is_told_by_field_in_one_line():
    with pytest.raises(SerdeError, match=r"amountInCents: Input should be a valid integer.*") as error:
        serde_of(Order).deserialize(b'{"shop":"a","amountInCents":"x"}')
    assert "\n" not in str(error.value)


def test_models_flow_through_stores_and_topics():
    builder = ks.StreamsBuilder()
    orders = builder.stream("in", key=Order, value=Order)
    last = orders.group_by_key().reduce(lambda old, new: new, materialized="last")
    last.to_stream().map_values(lambda order: [order], value=list[Order]).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=Order, value=Order).pipe_input(ORDER, ORDER)
        assert driver.create_output_topic("out", key=Order, value=list[Order]).read_value() == [ORDER]
        assert driver.get_key_value_store("last").get(ORDER) == ORDER


@pytest.mark.parametrize("kind", [Plain, list[Plain], dict[str, Plain], Reference, Plain | None], ids=str)
def test_a_class_that_no_serde_can_write_is_refused_when_it_is_declared(kind):
    with pytest.raises(
        TopologyError, match=r"at .*test_pydantic.py:\d+ .*no serde can write Plain: make it a dataclass"
    ):
        ks.StreamsBuilder().stream("in", key=str, value=kind)


def test_pydantic_is_not_imported_by_kstreams():
    declare = "ks.StreamsBuilder().stream('in', key=str, value=dict)"
    code = f"import sys, kstreams as ks; {declare}; print('pydantic' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
