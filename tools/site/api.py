"""The pages of the API reference: one for each public name of `kstreams`, one for each further public module."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

MODULES = {
    "kstreams.sources": "where records come from besides topics",
    "kstreams.sinks": "where results go besides topics",
    "kstreams.testing": "tests of topologies, processors and connectors",
    "kstreams.serdes": "types and bytes",
    "kstreams.schemas": "schema registries",
    "kstreams.spark": "topologies on Spark from a program",
    "kstreams.connectors": "sources and sinks of your own",
    "kstreams.state": "kinds of stores of your own",
    "kstreams.log": "topics: producers, consumers, administration",
    "kstreams.mirror": "copies of topics in another home",
    "kstreams.errors": "every error that kstreams raises",
}
"""The public modules besides `kstreams` itself, and what each is for."""

SUBJECTS = {
    "Topologies": ("kstreams.dsl", "kstreams.windows", "kstreams.processor.topology", "kstreams.kernel.retry"),
    "Expressions": ("kstreams.expressions",),
    "Types and serdes": ("kstreams.serdes", "kstreams.row_change"),
    "Records": ("kstreams.record", "kstreams.kernel.timestamps"),
    "Processors and error handlers": ("kstreams.processor.api",),
    "Stores and queries": ("kstreams.state",),
    "Applications": ("kstreams.runtime", "kstreams.config", "kstreams.errors"),
}
"""The subjects by which the names of `kstreams` are listed, and the packages whose names belong to each."""


class PublicName(NamedTuple):
    """A public name: its module, its name there, and the object that it stands for."""

    module: str
    name: str
    value: object

    @property
    def page(self) -> str:
        """The page that describes this name."""
        return f"api/{self.name}.rst" if self.module == "kstreams" else f"api/{self.module}.rst"

    @property
    def directive(self) -> str:
        if inspect.isclass(self.value):
            return "autoexception" if issubclass(self.value, BaseException) else "autoclass"
        return "autofunction" if callable(self.value) and hasattr(self.value, "__name__") else "autodata"

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.value) or "").split("\n\n")[0].split(". Kafka Streams:")[0].replace("\n", " ")


def public_names(module: str) -> list[PublicName]:
    """Return the public names of a module: those of its `__all__`, or the classes that it defines."""
    home = import_module(module)
    names = getattr(home, "__all__", None) or [name for name in dir(home) if _is_defined_in(home, name)]
    values = {name: getattr(home, name) for name in sorted(names, key=str.lower)}
    return [PublicName(module, name, value) for name, value in values.items() if _has_description(value)]


def _has_description(value: object) -> bool:
    """Return True for all but modules and aliases of types."""
    return not isinstance(value, ModuleType) and str(getattr(value, "__module__", "")).startswith("kstreams")


def _is_defined_in(module: ModuleType, name: str) -> bool:
    value = getattr(module, name)
    return inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_")


def own_names(module: str) -> list[PublicName]:
    """Return the public names of a module that `kstreams` itself does not have."""
    first = {name.name for name in public_names("kstreams")}
    return [name for name in public_names(module) if name.name not in first]


def write_api(folder: Path) -> None:
    """Write the sources of all pages of the API reference."""
    (folder / "api").mkdir(parents=True, exist_ok=True)
    (folder / "api" / "index.md").write_text("\n".join(index()) + "\n")
    for name in public_names("kstreams"):
        (folder / name.page).write_text("\n".join([*_title(name.name), *_description(name)]) + "\n")
    for module, purpose in MODULES.items():
        names = own_names(module)
        parts = [line for name in names for line in (*_title(name.name, "-"), *_description(name))]
        page = [*_title(module), purpose[0].upper() + purpose[1:] + ".", "", *parts]
        (folder / "api" / f"{module}.rst").write_text("\n".join(page) + "\n")


def _title(text: str, line: str = "=") -> list[str]:
    return [text, line * len(text), ""]


def _description(name: PublicName) -> list[str]:
    members = ["   :members:", "   :inherited-members: Exception, dict, str, tuple, Enum, Struct"]
    is_class = name.directive in ("autoclass", "autoexception")
    return [f".. {name.directive}:: {name.module}.{name.name}", *(members if is_class else []), ""]


def index() -> Iterator[str]:
    """Return the list of all public names, by subject."""
    yield "# API\n\n`import kstreams as ks` gives these names. Each has a page with its examples; a test runs them.\n"
    names = public_names("kstreams")
    for subject in SUBJECTS:
        yield f"## {subject}\n\n| Name | Is |\n|---|---|"
        yield from (
            f"| [`{name.name}`]({name.name}.rst) | {_cell(name.summary)} |"
            for name in names
            if subject_of(name) == subject
        )
        yield ""
    yield "## Modules\n\n| Module | For |\n|---|---|"
    yield from (f"| [`{module}`]({module}.rst) | {purpose} |" for module, purpose in MODULES.items())
    pages = [*(name.name for name in names), *MODULES]
    yield "\n```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```"


def subject_of(name: PublicName) -> str:
    """Return the subject of a name: the one whose package defines it."""
    home = sys.modules["kstreams"]._HOME_OF[name.name]
    return next(subject for subject, packages in SUBJECTS.items() if home.startswith(packages))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
