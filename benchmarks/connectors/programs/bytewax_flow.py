"""Bytewax' connectors: its CSV source, Kafka, and its file sink of lines. `BENCH` is a JSON object."""

from pathlib import Path

import orjson
from begun import begun
from bytewax import operators as op
from bytewax.connectors.files import CSVSource, FileSink
from bytewax.connectors.kafka import KafkaSinkMessage
from bytewax.connectors.kafka import operators as kop
from bytewax.dataflow import Dataflow
from bytewax.run import cli_main

bench = begun()
flow = Dataflow("bench")
if bench["work"] == "csv":
    rows = op.input("in", flow, CSVSource(Path(bench["csv"])))
    messages = op.map("encode", rows, lambda row: KafkaSinkMessage(row["id"].encode(), orjson.dumps(row)))
    kop.output("out", messages, brokers=[bench["bootstrap"]], topic=bench["topic"])
else:
    source = kop.input("in", flow, brokers=[bench["bootstrap"]], topics=[bench["topic"]], tail=False, batch_size=10_000)
    lines = op.map("line", source.oks, lambda message: ("lines", message.value.decode()))
    op.output("out", lines, FileSink(Path(bench["folder"]) / "lines"))
cli_main(flow)
