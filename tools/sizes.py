"""Reports the size of functions and files of `kstreams`, and fails at long functions and at names that say little.

A function has at most 40 lines (docstring aside), no file has a name that says nothing, and within one package, such as
`kstreams.serdes`, no public name stands for two classes. Files and folders have no limits: what counts is their shape.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median

FUNCTION_LINES = 40
PACKAGE = Path("kstreams")
NAMES_THAT_SAY_NOTHING = frozenset({"utils", "util", "helpers", "common", "misc"})

Definition = ast.FunctionDef | ast.AsyncFunctionDef


def main(root: Path) -> int:
    """Print the breaches and the medians; the exit status is 1 when there is a breach.

    Parameters
    ----------
    root : Path
        The folder of a package.
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
        *(f"{path}: a name that says nothing" for path in sources if path.stem in NAMES_THAT_SAY_NOTHING),
        *(
            f"{name} stands for several classes: {', '.join(places)}"
            for (_, name), places in classes(trees).items()
            if len(places) > 1
        ),
    ]
    print(*breaches, summary([*sources.values()], [lines for *_, lines in functions]), sep="\n")
    return 1 if breaches else 0


def read(folder: Path) -> dict[Path, str]:
    return {path: path.read_text() for path in sorted(folder.rglob("*.py"))}


def summary(texts: list[str], functions: list[int]) -> str:
    files = [length(text) for text in texts]
    return (
        f"{len(files)} files, {sum(files):,} lines, median {median_of(files)}; "
        f"{len(functions)} functions, median {median_of(functions)} lines, longest {max(functions, default=0)}"
    )


def classes(trees: Mapping[Path, ast.AST]) -> dict[tuple[str, str], list[str]]:
    """By package and name of a public class: where it is defined."""
    places: dict[tuple[str, str], list[str]] = {}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault((path.parts[1], node.name), []).append(f"{path}:{node.lineno}")
    return places


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
    sys.exit(main(PACKAGE))
