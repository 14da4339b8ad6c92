"""Installs what pip would, from the environment that runs this: links instead of downloads, and nothing undeclared.

`python linked_install.py VENV --editable '.[demo,test]'` stands in for `pip install` in the recipes of the Makefile.
Packages that neither the extras nor their own requirements name are missing in the new environment, as after pip.
"""

from __future__ import annotations

import sys
import sysconfig
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, EntryPoint, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

SCRIPT = "#!{python}\nimport sys\nfrom {module} import {attr}\nsys.exit({attr}())\n"


def install(venv: Path, project: Path, extras: Iterable[str]) -> None:
    """Link a project with some extras, and what it needs, into an environment."""
    ours = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    paths = sysconfig.get_paths(vars={"base": str(venv), "platbase": str(venv)})
    site, scripts = Path(paths["purelib"]), Path(paths["scripts"])
    (site / f"{ours['name']}.pth").write_text(f"{project}\n")
    needed = [distribution(ours["name"]), *_needed(_requirements(ours, extras))]
    for each in needed:
        for name in sorted(_top_level(each)):
            if not (site / name).exists():
                (site / name).symlink_to(Path(str(each.locate_file(name))).resolve())
        for command in each.entry_points.select(group="console_scripts"):
            _write_script(scripts, command)


def _requirements(project: dict[str, object], extras: Iterable[str]) -> Iterator[Requirement]:
    """What a project requires with some extras; one of them may name others."""
    optional = project["optional-dependencies"]
    assert isinstance(optional, dict)
    for text in [*project["dependencies"], *(text for extra in extras for text in optional[extra])]:  # type: ignore[misc]
        required = Requirement(text)
        if required.name == project["name"]:
            yield from _requirements(project, required.extras)
        else:
            yield required


def _needed(wanted: Iterable[Requirement]) -> list[Distribution]:
    """The distributions that meet requirements, and those that these require."""
    found: dict[tuple[str, str], Distribution] = {}
    waiting = [(required.name, extra) for required in wanted for extra in ("", *required.extras) if _applies(required)]
    while waiting:
        name, extra = waiting.pop()
        if (canonicalize_name(name), extra) not in found:
            found[canonicalize_name(name), extra] = each = distribution(name)
            more = [required for required in map(Requirement, each.requires or []) if _applies(required, extra)]
            waiting += [(required.name, further) for required in more for further in ("", *required.extras)]
    return list({name: each for (name, _), each in found.items()}.values())


def _applies(required: Requirement, extra: str = "") -> bool:
    return required.marker is None or required.marker.evaluate({"extra": extra})


def _top_level(of: Distribution) -> set[str]:
    """The names of its folders and modules in `site-packages`."""
    names = {file.parts[0] for file in of.files or []}
    return {name for name in names if name not in ("..", "__pycache__") and not name.startswith("_editable_impl")}


def _write_script(folder: Path, command: EntryPoint) -> None:
    file = folder / command.name
    file.write_text(SCRIPT.format(python=folder / "python", module=command.module, attr=command.attr))
    file.chmod(0o755)


if __name__ == "__main__":
    _, target, option, what = sys.argv
    assert option == "--editable", sys.argv
    place, _, named = what.rstrip("]").partition("[")
    install(Path(target).resolve(), Path(place).resolve(), filter(None, named.split(",")))
