"""`import kstreams` is light: it loads no engine and nothing that only one of them needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pyspark", "py4j", "delta", "pandas", "confluent_kafka", "rocksdict", "typer", "rich", "pytest")


@pytest.mark.parametrize("module", ["kstreams", "kstreams.log", "kstreams.testing", "kstreams.cli"])
def test_importing_loads_no_engine(module: str) -> None:
    code = f"import sys, {module}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_command_starts_without_arrow() -> None:
    code = "import sys, kstreams.cli; print(*[name for name in ('numpy', 'pyarrow') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
