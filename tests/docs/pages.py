"""The snippets of a Markdown page, and how each is run.

A fence says by its first word what happens: `python` is run (with `title=NAME` it is saved to that file instead),
`sh` is run with `kstreams` on the path, `json`/`text` after an `sh` is what that printed (`...` stands for anything;
with `lines`, in any order). `py code=FILE` is a part of the program of PySpark that `kstreams explain --code` prints of
that file. Other `py`, and a fence without a word, are not run. The word `spark` marks what needs Spark.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    page: str
    line: int
    language: str
    options: tuple[str, ...]
    text: str

    @property
    def title(self) -> str | None:
        return self._option("title")

    @property
    def code(self) -> str | None:
        """The application of whose program of PySpark this is a part."""
        return self._option("code")

    def _option(self, name: str) -> str | None:
        prefix = f"{name}="
        return next((option.removeprefix(prefix) for option in self.options if option.startswith(prefix)), None)

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def needs_spark(self) -> bool:
        return "spark" in self.options


def snippets(path: Path) -> Iterator[Snippet]:
    text = path.read_text()
    for match in _FENCE.finditer(text):
        language, *options = match[1].split() or [""]
        line = text.count("\n", 0, match.start()) + 2
        yield Snippet(path.relative_to(ROOT).as_posix(), line, language, tuple(options), match[2])


class Reader:
    """Somebody who follows a page from top to bottom in an empty folder, with the commands of one environment."""

    def __init__(self, folder: Path, commands: Path, environment: dict[str, str]) -> None:
        self.folder, self.python, self.environment = folder, str(commands / "python"), environment
        self.printed = ""
        self._programs = dict[str, str]()

    def follow(self, snippet: Snippet) -> None:
        steps = {"python": self.run_python, "sh": self.run_shell, "json": self.compare, "text": self.compare}
        steps |= {"py": self.find_in_program} if snippet.code else {}
        step = steps.get(snippet.language)
        if step is not None:
            step(snippet)

    def run_python(self, snippet: Snippet) -> None:
        if snippet.title:
            (self.folder / snippet.title).write_text(snippet.text)
        else:
            self.printed = self._run([self.python, "-"], snippet.text, snippet.place)

    def run_shell(self, snippet: Snippet) -> None:
        self.printed = self.shell(snippet.text, snippet.place)

    def shell(self, text: str, place: str) -> str:
        """What lines of a shell print; `place` says where they are shown."""
        return self._run(["bash", "-euo", "pipefail", "-c", text], "", place)

    def compare(self, snippet: Snippet) -> None:
        wanted, got = snippet.text.splitlines(), self.printed.splitlines()
        if "lines" in snippet.options:
            got = [line for pattern in wanted for line in got if _like(pattern, line)] + [
                line for line in got if not any(_like(pattern, line) for pattern in wanted)
            ]
        matches = len(wanted) == len(got) and all(map(_like, wanted, got))
        assert matches, f"{snippet.place} shows\n{snippet.text}\nbut it printed\n{self.printed}"

    def find_in_program(self, snippet: Snippet) -> None:
        """Find the lines in the program of PySpark that is printed of an application."""
        program = self._program(str(snippet.code), snippet.place)
        pattern = ".*".join(map(re.escape, snippet.text.split("...")))
        assert re.search(pattern, program, re.DOTALL), f"{snippet.place} is not in the program\n{program}"

    def _program(self, file: str, place: str) -> str:
        if file not in self._programs:
            self._programs[file] = self.shell(f"kstreams explain {file} --engine spark --code", place)
        return self._programs[file]

    def _run(self, command: list[str], text: str, place: str) -> str:
        done = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env=self.environment,
            timeout=240,
        )
        assert done.returncode == 0, f"{place} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stdout


def _like(pattern: str, line: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("..."))), line) is not None
