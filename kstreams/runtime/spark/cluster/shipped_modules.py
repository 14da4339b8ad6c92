"""The user's modules on a Python worker of Spark: those that functions import when they are called, from their text."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import CodeType, ModuleType

from kstreams.modules.user_modules import Source


def offer(sources: Mapping[str, Source]) -> None:
    """Let imports find these modules, where nothing else has their names; a text that changed is imported anew."""
    if _finder not in sys.meta_path:
        sys.meta_path.append(_finder)
    for name, source in sources.items():
        if _finder.sources.get(name) not in (None, source):
            sys.modules.pop(name, None)
        _finder.sources[name] = source


class _Finder(MetaPathFinder):
    """Finds modules whose texts came with a program."""

    def __init__(self) -> None:
        self.sources: dict[str, Source] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """How a module is loaded; None where it did not come."""
        source = self.sources.get(fullname)
        if source is None:
            return None
        spec = spec_from_loader(fullname, _Loader(source), origin=source.file, is_package=source.is_package)
        assert spec is not None
        spec.has_location = True  # it then has a __file__
        return spec


class _Loader(InspectLoader):
    """Runs the text of a module; stack traces name its file."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def get_source(self, fullname: str) -> str:
        """Its text."""
        return self._source.text

    def is_package(self, fullname: str) -> bool:
        """Whether it is a package."""
        return self._source.is_package

    def get_code(self, fullname: str) -> CodeType:
        """Its code."""
        return self.source_to_code(self._source.text, self._source.file)


_finder = _Finder()
