"""A query of Nexmark on Bytewax: see kstreams_program.py. Its state is in memory, and it runs in one worker."""

import os

import orjson
from bytewax import operators as op
from bytewax.connectors.kafka import KafkaSinkMessage
from bytewax.connectors.kafka import operators as kop
from bytewax.dataflow import Dataflow
from bytewax.run import cli_main
from keyed_steps import Half, query_of, side_input


class KeyState(dict):
    """The state of one key."""

    def set(self, name, value):
        self[name] = value


def stateful(step):
    """Return the step as Bytewax calls it."""

    def call(state, row):
        state = KeyState() if state is None else state
        return state, step(state, row)

    return call


name = os.environ["QUERY"]
bootstrap = os.environ["BOOTSTRAP"]
query = query_of(name, lambda: side_input(bootstrap))
half = Half(int(os.environ["EVENTS"]))
flow = Dataflow("nexmark")
source = kop.input("in", flow, brokers=[bootstrap], topics=["nexmark"], batch_size=10_000)
rows = op.flat_map("rows", source.oks, lambda message: query.rows(half.count(orjson.loads(message.value))))
for number, step in enumerate(query.steps):
    keyed = op.key_on(f"key-{number}", rows, step.key)
    results = op.stateful_flat_map(f"step-{number}", keyed, stateful(step.step))
    rows = op.key_rm(f"rows-{number}", results)
messages = op.map("encode", rows, lambda row: KafkaSinkMessage(query.key(row).encode(), orjson.dumps(query.value(row))))
kop.output("out", messages, brokers=[bootstrap], topic=name)

if __name__ == "__main__":
    cli_main(flow)
