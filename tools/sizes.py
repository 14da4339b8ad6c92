"""Reports the size of functions, files and folders of `kstreams`, and fails when one is over its limit.

A function has at most 40 lines (docstring aside). A file has at most 400, or 600 when no more than 300 of them are
code, as in façades with long docstrings and overloads. A folder has at most 20 modules, without counting `__init__`.
No name stands for two classes, private ones included.
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
FACADE_LINES = 600
FACADE_CODE_LINES = 300
FOLDER_FILES = 20
NAMES_THAT_SAY_NOTHING = frozenset({"utils", "util", "helpers", "common", "misc"})

Definition = ast.FunctionDef | ast.AsyncFunctionDef


def main(root: Path) -> int:
    """Print the breaches and the medians; the exit status is 1 when there is a breach."""
    sources = {path: path.read_text() for path in sorted(root.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in sources.items()}
    functions = [(path, node, body_lines(node)) for path, tree in trees.items() for node in definitions(tree)]
    breaches = [
        *(
            f"{path}:{node.lineno} {node.name} has {lines} lines"
            for path, node, lines in functions
            if lines > FUNCTION_LINES
        ),
        *(f"{path} has {length(text)} lines" for path, text in sources.items() if too_long(text, trees[path])),
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


def too_long(text: str, tree: ast.Module) -> bool:
    is_facade = code_lines(text, tree) <= FACADE_CODE_LINES
    return length(text) > (FACADE_LINES if is_facade else FILE_LINES)


def code_lines(text: str, tree: ast.Module) -> int:
    """Lines that are neither blank, nor comment, nor part of a docstring or an overload."""
    told = (node for node in ast.walk(tree) if is_text(node) or is_overload(node))
    said = {line for node in told for line in range(node.lineno - is_overload(node), (node.end_lineno or 0) + 1)}
    lines = enumerate(text.splitlines(), 1)
    return sum(1 for number, line in lines if number not in said and line.strip() and not line.lstrip().startswith("#"))


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_overload(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any(isinstance(decorator, ast.Name) and decorator.id == "overload" for decorator in decorators)


def length(text: str) -> int:
    return text.count("\n")


def median_of(numbers: list[int]) -> int:
    return round(median(numbers or [0]))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "kstreams")))
