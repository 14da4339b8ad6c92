"""The same connectors in an application, for `kstreams run app.py --until-end`: a topology reads or writes the topic.

`BENCH` is the JSON object of kstreams_connector.py.
"""

from __future__ import annotations

import kstreams as ks
from benchmarks.connectors.programs.begun import begun
from benchmarks.connectors.programs.kstreams_connector import SOURCES, sink, source
from benchmarks.connectors.trades import PARTITIONS, Trade

bench = begun()
work = bench["work"]
topology = ks.StreamsBuilder()
if work in SOURCES:
    topology.stream(source(work, bench).to_topic(bench["topic"], PARTITIONS), name="in")
else:
    topology.stream(bench["topic"], key=str, value=Trade).to(sink(work, bench), name="out")
