"""`kstreams init`: creates a small project that runs at once."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from kstreams.errors import KStreamsError

SUFFIX = ".template"
FIRST_LINES = ("the quick brown fox", "jumps over the lazy dog", "the dog sleeps on")


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the project; it must be new or empty.")],
) -> None:
    """Create a project: application, test, configuration, and a topic with three lines to count.

    Example: `kstreams init wordcount && cd wordcount && kstreams run app.py --until-end`
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise KStreamsError(f"{folder} exists and is not empty: name a new folder")
    name = re.sub(r"[^a-zA-Z0-9._-]", "-", folder.resolve().name)
    _write_project(folder, name)
    _write_topic(folder / ".kstreams" / "log")
    typer.echo(f"wrote {folder}. Next:\n  cd {folder}\n  kstreams run app.py --until-end")
    typer.echo("  kstreams consume word-counts --from-beginning --until-end\n  pytest")


def _write_project(folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for template in files("kstreams.cli").joinpath("project").iterdir():
        if template.name.endswith(SUFFIX):
            text = Template(template.read_text(encoding="utf-8")).substitute(name=name)
            (folder / template.name.removesuffix(SUFFIX)).write_text(text, encoding="utf-8")
    (folder / ".gitignore").write_text(".kstreams/\n__pycache__/\n", encoding="utf-8")


def _write_topic(log_dir: Path) -> None:
    from kstreams.log import home_at

    log = home_at(log_dir).open()
    with log.admin() as admin:
        admin.create_topic("lines")
    with log.producer() as producer:
        for line in FIRST_LINES:
            producer.send("lines", None, line.encode())
        producer.flush()
