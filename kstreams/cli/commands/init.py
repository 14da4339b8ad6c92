"""`kstreams init`: creates a project that runs at once: an application, an example, or a connector to install."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from kstreams.errors import KStreamsError
from kstreams.kernel.advice import nearest_name

SUFFIX = ".template"
FIRST_LINES = ("the quick brown fox", "jumps over the lazy dog", "the dog sleeps on")


def init(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="Folder of the project; it must be new or empty.", show_default=False),
    ] = None,
    connector: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Create a package with the source and the sink NAME. Default of FOLDER: kstreams-NAME."
        ),
    ] = None,
    example: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Copy the example NAME of the gallery. Default of FOLDER: NAME."),
    ] = None,
) -> None:
    """Create a project: application, test, configuration, container, and a topic with three lines to count.

    With `--example`, the project is an application of the gallery, with its input and its test. With `--connector`, it
    is a package with a source and a sink, their entry points, and tests of the contract that each connector keeps.

    Examples: `kstreams init wordcount && cd wordcount && kstreams run app.py --until-end`,
    `kstreams init --example fraud`
    """
    if connector is not None and example is not None:
        raise KStreamsError("give --connector or --example, not both")
    if connector is not None:
        _init_connector(connector, folder)
    elif example is not None:
        _init_example(example, folder or Path(example))
    elif folder is not None:
        _init_application(folder)
    else:
        raise KStreamsError(
            "name the folder of the project: kstreams init FOLDER; or an example: kstreams init --example fraud"
        )


def _init_application(folder: Path) -> None:
    _require_new(folder)
    name = re.sub(r"[^a-zA-Z0-9._-]", "-", folder.resolve().name)
    _write_files(files("kstreams.cli").joinpath("project"), folder, {"name": name})
    _write_topic(folder / ".kstreams" / "log")
    typer.echo(f"wrote {folder}. Next:\n  cd {folder}\n  kstreams run app.py --until-end")
    typer.echo("  kstreams consume word-counts --from-beginning --until-end\n  pytest")


def _init_example(name: str, folder: Path) -> None:
    gallery = files("kstreams.cli").joinpath("gallery")
    examples = sorted(example.name for example in gallery.iterdir() if example.is_dir())
    if name not in examples:
        nearest = nearest_name(name, examples)
        hint = f"did you mean {nearest}? " if nearest else ""
        raise KStreamsError(f"there is no example {name!r}: {hint}the gallery has {', '.join(examples)}")
    _require_new(folder)
    _write_files(gallery.joinpath(name), folder, {})
    commands = (folder / "README.md").read_text(encoding="utf-8").partition("```sh\n")[2].partition("```")[0]
    typer.echo(f"wrote {folder}. Next:\n  cd {folder}\n  pytest\n{textwrap.indent(commands, '  ').rstrip()}")


def _init_connector(name: str, folder: Path | None) -> None:
    _require_new_name(name)
    folder = folder or Path(f"kstreams-{name}")
    _require_new(folder)
    package = f"kstreams_{name.replace('-', '_')}"
    names = {
        "name": name,
        "distribution": f"kstreams-{name}",
        "package": package,
        "kind": "".join(word.capitalize() for word in re.split("[-_]", name)),
    }
    templates = files("kstreams.cli").joinpath("connector_project")
    for part, target in {".": folder, "package": folder / package, "tests": folder / "tests"}.items():
        _write_files(templates.joinpath(part), target, names)
    (folder / ".gitignore").write_text("*.egg-info/\nbuild/\n__pycache__/\n", encoding="utf-8")
    typer.echo(f"wrote {folder}. Next:\n  cd {folder}\n  pytest")


def _require_new(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise KStreamsError(f"{folder} exists and is not empty: name a new folder")


def _require_new_name(name: str) -> None:
    """Raise an error if the name cannot be that of a connector, or is the name of one of kstreams."""
    from kstreams.connect.installed import SINKS, SOURCES

    if re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name) is None:
        raise KStreamsError(
            f"{name!r} is no name of a connector: take small letters, digits and hyphens, as in my-queue"
        )
    if name in (*SOURCES.names(), *SINKS.names()):
        raise KStreamsError(f"there is a connector {name!r} already: take another name")


def _write_files(templates: Traversable, folder: Path, names: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in templates.iterdir():
        if file.name.endswith(SUFFIX):
            text = Template(file.read_text(encoding="utf-8")).substitute(names)
            (folder / file.name.removesuffix(SUFFIX)).write_text(text, encoding="utf-8")
        elif file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())


def _write_topic(log_dir: Path) -> None:
    from kstreams.log import home_at

    log = home_at(log_dir).open()
    with log.admin() as admin:
        admin.create_topic("lines")
    with log.producer() as producer:
        for line in FIRST_LINES:
            producer.send("lines", None, line.encode())
        producer.flush()
