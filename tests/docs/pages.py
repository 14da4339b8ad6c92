"""The snippets of a Markdown page, and how each is run.

A fence says by its first word what happens: `python` is run (with `title=NAME` it is saved to that file instead),
`sh` is run with `kstreams` on the path, `json`/`text` after an `sh` is what that printed (`...` stands for anything;
with `lines`, in any order). A fence without a word is not run. The word `spark` marks what needs Spark.
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
        return next((option.removeprefix("title=") for option in self.options if option.startswith("title=")), None)

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

    def follow(self, snippet: Snippet) -> None:
        steps = {"python": self.run_python, "sh": self.run_shell, "json": self.compare, "text": self.compare}
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
