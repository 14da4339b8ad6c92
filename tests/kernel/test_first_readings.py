"""Two threads that read a type for the first time, at once.

Left to itself, msgspec ends the process there with a segmentation fault (0.22; one run of this script in one).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WAYS = {
    "a serde of JSON": "serde_of(order).deserialize(RAW)",
    "a serde of MessagePack": "MsgpackSerde(order).deserialize(PACKED)",
    "JSON of our own": "decode_json(RAW, order)",
    "rows as objects": "convert(PLAIN, order)",
}
SCRIPT = """
import sys, threading
import msgspec
from kstreams.kernel.decoders import convert, decode_json
from kstreams.serdes import MsgpackSerde, serde_of

PLAIN = {{"one": {{"a": 1, "b": "x"}}, "two": {{"a": 1, "b": "x"}}}}
RAW, PACKED = msgspec.json.encode(PLAIN), msgspec.msgpack.encode(PLAIN)

def read(order, together):
    together.wait()
    {way}

sys.setswitchinterval(1e-6)
for number in range(1_000):
    line = msgspec.defstruct("Line", [("a", int), ("b", str)])
    order, together = msgspec.defstruct("Order", [("one", line), ("two", line)]), threading.Barrier(2)
    threads = [threading.Thread(target=read, args=(order, together)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_threads_may_read_a_type_for_the_first_time_at_once(way: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(way=way)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
