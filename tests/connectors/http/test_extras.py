"""Without the packages of an extra, the error says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT = """
import sys
sys.modules[{package!r}] = None
import kstreams as ks
try:
    {call}
except ks.KStreamsError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("package", "call", "extra"),
    [
        ("httpx", "ks.sources.http('http://localhost')", "kstreams-dsl[http]"),
        ("httpx", "ks.sources.sse('http://localhost')", "kstreams-dsl[http]"),
        ("httpx", "ks.sinks.http('http://localhost')", "kstreams-dsl[http]"),
        ("uvicorn", "ks.sources.webhook('/orders', port=1)", "kstreams-dsl[http,server]"),
    ],
)
def test_the_error_names_the_extra(package: str, call: str, extra: str) -> None:
    program = WITHOUT.format(package=package, call=call)
    printed = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert f"install {'it' if package == 'httpx' else 'them'} with `pip install '{extra}'`" in printed
