"""Builds the site of the documentation: `python -m tools.site [FOLDER]`, by default `build/site`.

The pages of one version lie in a folder of its name. Folders of other versions stay, and each page lists all versions.
"""

from __future__ import annotations

import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from sphinx.cmd.build import main as sphinx_build

from tools.site.additions import write_additions
from tools.site.api import write_api
from tools.site.staging import ROOT, write_staged_pages


def main(arguments: list[str]) -> int:
    target = Path(arguments[0]) if arguments else ROOT / "build" / "site"
    with tempfile.TemporaryDirectory() as folder:
        return build(target, Path(folder))


def build(target: Path, sources: Path) -> int:
    """Build the site from staged sources; a warning is an error."""
    write_staged_pages(sources)
    write_api(sources)
    built = target / version("kstreams-dsl")
    configuration = Path(__file__).parent
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--jobs", "auto"]
    folders = ["-c", configuration, "-d", sources / ".doctrees", sources, built]
    status = sphinx_build([*options, *map(str, folders)])
    if status == 0:
        write_additions(target, built)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
