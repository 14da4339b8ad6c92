"""Counts what makes code hard to read in `kstreams`, and fails where a figure is above its bound.

    python tools/shape.py          the figures, and the first places of each figure that is above its bound
    python tools/shape.py --all    every place

The bounds are in `BOUNDS`. CONTRIBUTING.md says what to write instead. Size is not counted: a long function or file is
no fault.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path("kstreams")

BOUNDS = {
    "packed": 0,
    "vague": 0.5,
    "splats": 0,
    "parameters": 0,
    "branches": 0,
    "any": 40.0,
    "imports": 0.145,
    "small": 10,
    "asserts": 0,
    "file names": 0,
    "class names": 0,
}
"""The greatest permitted value of each figure: see `figures`."""

MAX_PARAMETERS = 6
MAX_BRANCHES = 12
SMALL_FILE_LINES = 30
FILE_NAMES = frozenset({"utils", "util", "helpers", "common", "misc"})
VAGUE_NAMES = frozenset(
    {
        "asked", "begun", "done", "either", "each", "found", "further", "given", "got", "held", "kept", "known",
        "lacking", "left", "made", "meant", "missing", "one", "others", "put", "reached", "rest", "said", "same",
        "seen", "shown", "such", "taken", "there", "these", "those", "told", "waiting", "wanted", "what",
    }
)  # fmt: skip
"""Names of variables that do not say what the value is."""

BRANCHES = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.IfExp, ast.BoolOp, ast.comprehension)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One parsed file."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))

    def at(self, node: ast.stmt | ast.expr, message: str) -> str:
        return f"{self.path}:{node.lineno} {message}"


def main(arguments: list[str]) -> int:
    """Print figures and places. Return 1 if a figure is above its bound, otherwise 0."""
    sources = [Source(path, text := path.read_text(), ast.parse(text)) for path in sorted(PACKAGE.rglob("*.py"))]
    places = places_of(sources)
    values = figures(sources, places)
    exceeded = [name for name, bound in BOUNDS.items() if values[name] > bound]
    for name in places:
        if "--all" in arguments:
            print(*(f"{name}: {place}" for place in places[name]), sep="\n")
        elif name in exceeded:
            print(*(f"{name}: {place}" for place in places[name][:10]), sep="\n")
    print("; ".join(f"{name} {value:g}" for name, value in values.items()))
    for name in exceeded:
        print(f"{name} is {values[name]:g}, and may be {BOUNDS[name]:g} at most: see 'Shape' in CONTRIBUTING.md")
    return 1 if exceeded else 0


def figures(sources: list[Source], places: dict[str, list[str]]) -> dict[str, float]:
    """Return the value of each figure.

    `packed` and `any` are per 1,000 lines of code. `vague` is a percentage of all assigned names and parameters.
    `imports` is the ratio of import lines to lines of code. All others are counts.
    """
    code = sum(len(code_lines(source)) for source in sources)
    values: dict[str, float] = {"files": len(sources), "code": code}
    values.update({name: len(of_name) for name, of_name in places.items()})
    values["packed"] = round(1000 * len(places["packed"]) / code, 1)
    values["any"] = round(1000 * len(places["any"]) / code, 1)
    values["vague"] = round(100 * len(places["vague"]) / sum(len(bound_names(source)) for source in sources), 2)
    values["imports"] = round(sum(len(import_lines(source)) for source in sources) / code, 3)
    return values


def places_of(sources: list[Source]) -> dict[str, list[str]]:
    """Return the places of each figure that has places."""
    rules = {
        "packed": packed_assignments,
        "vague": vague_names,
        "splats": splatted_tuples,
        "parameters": functions_with_many_parameters,
        "branches": functions_with_many_branches,
        "any": uses_of_any,
        "small": small_files,
        "asserts": asserts_of_presence,
        "file names": file_names_that_say_nothing,
    }
    places = {name: [place for source in sources for place in rule(source)] for name, rule in rules.items()}
    places["class names"] = class_names_used_twice(sources)
    return places


def packed_assignments(source: Source) -> Iterator[str]:
    """Find assignments of several values: `a, b = x, y`. A swap is allowed."""
    for node in ast.walk(source.tree):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)):
            continue
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and not is_swap(target, node.value):
            yield source.at(node, ast.unparse(node)[:100])


def is_swap(target: ast.Tuple, value: ast.Tuple) -> bool:
    names = {ast.unparse(element) for element in target.elts}
    return bool(names & {ast.unparse(element) for element in value.elts})


def vague_names(source: Source) -> Iterator[str]:
    return (place for name, place in bound_names(source) if name.strip("_") in VAGUE_NAMES)


def bound_names(source: Source) -> list[tuple[str, str]]:
    """Return variables and parameters, each with its place."""
    names = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append((node.id, source.at(node, node.id)))
        if isinstance(node, ast.arg):
            names.append((node.arg, f"{source.path}:{node.lineno} {node.arg}"))
    return names


def splatted_tuples(source: Source) -> Iterator[str]:
    """Find calls that spread a tuple over their parameters: `f(*pair)`."""
    for function in source.functions:
        tuples = tuple_variables(function)
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and any(is_splat(argument, tuples) for argument in node.args):
                yield source.at(node, ast.unparse(node)[:100])


def tuple_variables(function: Function) -> set[str]:
    assignments = [
        node for node in ast.walk(function) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
    ]
    return {target.id for node in assignments for target in node.targets if isinstance(target, ast.Name)}


def is_splat(argument: ast.expr, tuples: set[str]) -> bool:
    if not isinstance(argument, ast.Starred):
        return False
    return isinstance(argument.value, ast.Tuple) or (
        isinstance(argument.value, ast.Name) and argument.value.id in tuples
    )


def functions_with_many_parameters(source: Source) -> Iterator[str]:
    if "commands" in source.path.parts:  # the parameters of a command are its options
        return
    for function in source.functions:
        parameters = [*function.args.posonlyargs, *function.args.args]
        count = sum(parameter.arg not in ("self", "cls") for parameter in parameters)
        if count > MAX_PARAMETERS:
            yield source.at(function, f"{function.name} has {count} positional parameters")


def functions_with_many_branches(source: Source) -> Iterator[str]:
    for function in source.functions:
        count = sum(isinstance(node, BRANCHES) for node in ast.walk(function))
        if count > MAX_BRANCHES:
            yield source.at(function, f"{function.name} has {count} branches")


def uses_of_any(source: Source) -> Iterator[str]:
    return (source.at(node, "Any") for node in ast.walk(source.tree) if isinstance(node, ast.Name) and node.id == "Any")


def small_files(source: Source) -> Iterator[str]:
    lines = len(source.text.splitlines())
    if lines <= SMALL_FILE_LINES and source.path.name != "__init__.py":
        yield f"{source.path} has {lines} lines"


def asserts_of_presence(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assert) and "is not None" in ast.unparse(node.test):
            yield source.at(node, ast.unparse(node)[:100])


def file_names_that_say_nothing(source: Source) -> Iterator[str]:
    if source.path.stem in FILE_NAMES:
        yield str(source.path)


def class_names_used_twice(sources: list[Source]) -> list[str]:
    """Find public class names that stand for several classes of one package."""
    places = defaultdict(list)
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[source.path.parts[1], node.name].append(f"{source.path}:{node.lineno}")
    return [f"{name}: {', '.join(of_name)}" for (_, name), of_name in places.items() if len(of_name) > 1]


def code_lines(source: Source) -> set[int]:
    """Return the numbers of lines that hold code: no docstring, import, comment or blank line."""
    skipped = docstring_lines(source) | import_lines(source)
    lines = enumerate(source.text.splitlines(), 1)
    return {
        number for number, line in lines if number not in skipped and line.strip() and not line.lstrip().startswith("#")
    }


def docstring_lines(source: Source) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and ast.get_docstring(node):
            lines |= lines_of(node.body[0])
    return lines


def import_lines(source: Source) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            lines |= lines_of(node)
    return lines


def lines_of(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
