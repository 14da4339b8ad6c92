"""Programs of Kafka Streams for tests: compiled once for a process, with the jars of the recorder."""

import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.conformance.fuzz import class_path


@cache
def compiled(folder: Path) -> str:
    """The class path of the Java programs in a folder."""
    target = Path(tempfile.gettempdir()) / f"kstreams-{folder.name}"
    target.mkdir(exist_ok=True)
    sources = map(str, folder.glob("*.java"))
    subprocess.run(["javac", "-nowarn", "-cp", class_path(), "-d", str(target), *sources], check=True)
    return f"{target}:{class_path()}"
