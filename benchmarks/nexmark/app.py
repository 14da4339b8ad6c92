"""A query of Nexmark as an application: `NEXMARK_QUERY=q5 kstreams run benchmarks/nexmark/app.py --until-end`.

`NEXMARK_FORM` is `functions` or `expressions` (the default), `NEXMARK_FOLDER` is the folder of the files of query 10.
"""

import os
from pathlib import Path

from benchmarks.nexmark.queries import topology as topology_of

query = os.environ["NEXMARK_QUERY"]
topology = topology_of(
    query, os.environ.get("NEXMARK_FORM", "expressions"), Path(os.environ.get("NEXMARK_FOLDER", "nexmark-files"))
)
config = {"application.id": f"nexmark-{query}"}
