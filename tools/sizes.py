"""Reports the size of functions, files and folders of `kstreams`, and fails when one is over its limit.

A file has at most 400 lines, in the other folders too. A function has at most 40 (docstring aside). A folder has at
most 20 modules, without counting `__init__`. No name stands for two classes, private ones included.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import median

FUNCTION_LINES = 40
FILE_LINES = 400
FOLDER_FILES = 20
PACKAGE = Path("kstreams")
OTHERS = tuple(Path(name) for name in ("tests", "tools", "benchmarks", "examples"))
NAMES_THAT_SAY_NOTHING = frozenset({"utils", "util", "helpers", "common", "misc"})

Definition = ast.FunctionDef | ast.AsyncFunctionDef


def main(root: Path, others: Iterable[Path] = ()) -> int:
    """Print the breaches and the medians; the exit status is 1 when there is a breach.

    Parameters
    ----------
    root : Path
        A folder for which all limits hold.
    others : iterable of Path
        Folders for which that of files holds.
    """
    sources = read(root)
    trees = {path: ast.parse(text) for path, text in sources.items()}
    functions = [(path, node, body_lines(node)) for path, tree in trees.items() for node in definitions(tree)]
    breaches = [
        *(
            f"{path}:{node.lineno} {node.name} has {lines} lines"
            for path, node, lines in functions
            if lines > FUNCTION_LINES
        ),
        *long_files(sources),
        *(breach for folder in others for breach in long_files(read(folder))),
        *(f"{path}: a name that says nothing" for path in sources if path.stem in NAMES_THAT_SAY_NOTHING),
        *(f"{folder} has {count} modules" for folder, count in modules(sources).items() if count > FOLDER_FILES),
        *(
            f"{name} stands for several classes: {', '.join(places)}"
            for name, places in classes(trees).items()
            if len(places) > 1
        ),
    ]
    print(*breaches, summary([*sources.values()], [lines for *_, lines in functions]), sep="\n")
    return 1 if breaches else 0


def read(folder: Path) -> dict[Path, str]:
    return {path: path.read_text() for path in sorted(folder.rglob("*.py"))}


def long_files(sources: Mapping[Path, str]) -> Iterator[str]:
    lengths = ((path, length(text)) for path, text in sources.items())
    return (f"{path} has {lines} lines" for path, lines in lengths if lines > FILE_LINES)


def summary(texts: list[str], functions: list[int]) -> str:
    files = [length(text) for text in texts]
    return (
        f"{len(files)} files, {sum(files):,} lines, median {median_of(files)}; "
        f"{len(functions)} functions, median {median_of(functions)} lines, longest {max(functions, default=0)}"
    )


def modules(paths: Iterable[Path]) -> Counter[Path]:
    """By folder: how many modules lie in it, `__init__` aside."""
    return Counter(path.parent for path in paths if path.name != "__init__.py")


def classes(trees: Mapping[Path, ast.AST]) -> dict[str, list[str]]:
    """By name of a class: where it is defined."""
    found: dict[str, list[str]] = {}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(f"{path}:{node.lineno}")
    return found


def definitions(tree: ast.AST) -> Iterator[Definition]:
    return (node for node in ast.walk(tree) if isinstance(node, Definition))


def body_lines(function: Definition) -> int:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def length(text: str) -> int:
    return text.count("\n")


def median_of(numbers: list[int]) -> int:
    return round(median(numbers or [0]))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])) if len(sys.argv) > 1 else main(PACKAGE, OTHERS))
