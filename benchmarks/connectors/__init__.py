"""Connectors beside other systems in one run: rows of CSV and of PostgreSQL into topics, and out of topics.

`python -m benchmarks connectors` takes some ten minutes, and the first time more for the packages of the others.
Systems take turns, in three rounds; the medians count. `BENCH_SCALE=0.1` takes a tenth of the rows, `BENCH_ROUNDS=1`
one round, and `BENCH_ONLY=upsert` the works and systems whose names have this text.

The loops by hand and Quix' CSV source begin anew after a crash. Of Kafka Connect's own connectors, those of files read
and write lines without parsing them; there is no free one for Parquet or JDBC. CPU seconds are those of the system's
own processes: of brokers and databases none, but of an embedded log all. It needs Java, Maven once, and PostgreSQL.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

ENVIRONMENTS = Path(tempfile.gettempdir()) / "kstreams-benchmarks"
QUIX = ["quixstreams==3.23.1", "psycopg2-binary==2.9.13", "pyarrow==26.0.1"]
BYTEWAX = ["bytewax[kafka]==0.21.1", "orjson==3.13.0"]


def report() -> str:
    """Measure, and return the table."""
    # imported here, so that the measured programs, which are in this package, do not load everything
    from benchmarks.connectors.cases import Cases
    from benchmarks.connectors.measure import FEW_ROWS, environment_with, measure, table
    from benchmarks.connectors.servers import Servers

    quix = environment_with("quix", QUIX, ENVIRONMENTS)
    bytewax = environment_with("bytewax", BYTEWAX, ENVIRONMENTS)
    scale = float(os.environ.get("BENCH_SCALE", "1"))
    rounds = int(os.environ.get("BENCH_ROUNDS", "3"))
    only = os.environ.get("BENCH_ONLY", "")
    with ExitStack() as resources:
        servers = Servers(resources)
        cases = [case for case in Cases(servers, quix, bytewax, scale).all() if only in f"{case.work}: {case.system}"]
        counts = {case.rows for case in cases} | {FEW_ROWS}
        servers.fill(counts)
        measure(cases, rounds)
        return table(cases)
