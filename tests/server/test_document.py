"""The OpenAPI document and the server agree: schemathesis asks what the document allows, and what it does not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kstreams.runtime.native.lifecycle import State
from kstreams.server import Limits
from tests.native.world import World, until
from tests.server.conftest import every_kind
from tests.server.served import Client, served

pytestmark = pytest.mark.slow

_SCHEMATHESIS = "import sys; from schemathesis.cli import schemathesis; sys.exit(schemathesis())"


def test_the_server_answers_as_its_document_says(tmp_path: Path) -> None:
    """Left out: watches, which do not end, and the claim that what the document allows is answered.

    A cursor cannot be guessed, and a document cannot say which parameters exclude each other.
    """
    world = World(tmp_path, **{"commit.interval.ms": 20})
    for topic, partitions in (("in", 2), ("table", 1), ("names", 1)):
        world.create(topic, partitions)
    world.write("in", [(f"k{i % 10}", str(i), 1_000 * i) for i in range(50)])
    with served(world, every_kind(), Limits(page_rows=50)) as (client, streams):
        until(lambda: streams.state is State.RUNNING)
        asked = subprocess.run(_command(client), cwd=tmp_path, capture_output=True, text=True, check=False, timeout=250)
    assert asked.returncode == 0, asked.stdout[-5_000:] + asked.stderr[-2_000:]
    generated = re.search(r"([\d,]+) generated, ([\d,]+) passed", asked.stdout)
    assert generated is not None, asked.stdout[-2_000:]
    assert int(generated[1].replace(",", "")) > 200


def _command(client: Client) -> list[str]:
    place = f"http://{client.host}/v1/openapi.json"
    checks = ["--checks", "all", "--exclude-checks", "positive_data_acceptance", "--exclude-path-regex", "/watch$"]
    runs = ["--phases", "examples,coverage,fuzzing", "--max-examples", "20", "--seed", "7", "--no-color"]
    return [
        sys.executable,
        "-c",
        _SCHEMATHESIS,
        "run",
        place,
        "-H",
        f"Authorization: Bearer {client.token}",
        *checks,
        *runs,
    ]
