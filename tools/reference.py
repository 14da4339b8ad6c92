"""Writes the pages of docs/ that follow from the code: operators, configuration, command line.

python tools/reference.py            # write them
python tools/reference.py --check    # fail when one of them is not what it would write
"""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
NOTE = "<!-- Written by tools/reference.py (`make docs`) from the code: change it there. -->\n"

Page = Iterator[str]


def main(arguments: list[str]) -> int:
    if "--check" in arguments:
        return check()
    for name, page in PAGES.items():
        (DOCS / name).write_text(text_of(page))
    return 0


def check() -> int:
    """Print how the pages differ from what they should be."""
    different = 0
    for name, page in PAGES.items():
        now = (DOCS / name).read_text() if (DOCS / name).exists() else ""
        wanted = text_of(page)
        sys.stdout.writelines(difflib.unified_diff(now.splitlines(True), wanted.splitlines(True), name, "make docs"))
        different += now != wanted
    return min(different, 1)


def text_of(page: Callable[[], Page]) -> str:
    return NOTE + "\n".join(page()) + "\n"


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Page:
    names = list(headings)
    yield "| " + " | ".join(names) + " |"
    yield "|" + "---|" * len(names)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |"


def first_sentence(documented: Any) -> str:
    return (inspect.getdoc(documented) or "").split("\n\n")[0].replace("\n", " ")


# --- configuration --------------------------------------------------------------------------------------------------


def configuration() -> Page:
    from kstreams.config import KEYS, PREFIXES
    from kstreams.log.embedded.topic_config import TOPIC_SETTINGS

    yield CONFIGURATION_INTRODUCTION
    used = [key for key in KEYS.values() if key.used]
    rows = ((f"`{k.name}`{' (own)' if k.own else ''}", k.kind.name, shown(k.default), k.doc) for k in used)
    yield from table(("Key", "Value", "Default", "Meaning"), rows)
    yield "\n## Keys that are passed on\n"
    yield (
        "Keys that start with " + ", ".join(f"`{prefix}`" for prefix in PREFIXES) + " go on, unread, to what they name."
    )
    yield "\n## Keys of Kafka Streams without effect\n"
    yield "They are accepted, so that an existing configuration runs, and named in a warning.\n"
    yield from table(("Key", "Why"), ((f"`{k.name}`", k.doc) for k in KEYS.values() if not k.used))
    yield "\n## Settings of topics\n"
    yield "For `kstreams topics create --config KEY=VALUE` and `Admin.create_topic`, by Kafka's names.\n"
    yield from table(("Key", "Default"), ((f"`{name}`", shown(s.default)) for name, s in TOPIC_SETTINGS.items()))


def shown(default: Any) -> str:
    return "" if default in (None, "") else f"`{default}`"


CONFIGURATION_INTRODUCTION = """# Configuration

The keys are Kafka Streams'. A setting can be given, the first one wins,

1. on the command line: `kstreams run app.py -c num.stream.threads=2`;
2. by the application: `config = {"num.stream.threads": 2}` in `app.py`, or as a keyword: `num_stream_threads=2`;
3. in the environment: `KSTREAMS_NUM_STREAM_THREADS=2`;
4. in `kstreams.toml` of the current folder: `num.stream.threads = 2`.

An unknown key or a bad value is an error that names the key and the nearest known one. *own* marks keys that Kafka
Streams does not have.
"""


# --- command line ---------------------------------------------------------------------------------------------------


def command_line() -> Page:
    import typer

    from kstreams.cli.commands import application

    yield COMMAND_LINE_INTRODUCTION
    root = typer.main.get_command(application())
    for name, command in sorted(root.commands.items()):  # type: ignore[attr-defined]
        members = getattr(command, "commands", None)
        if members is None:
            yield from one_command(f"kstreams {name}", command)
        for member, sub_command in sorted((members or {}).items()):
            yield from one_command(f"kstreams {name} {member}", sub_command)


def one_command(name: str, command: Any) -> Page:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    yield f"\n## `{' '.join([name, *(argument.metavar for argument in arguments)])}`\n"
    yield inspect.cleandoc(command.help) + "\n"
    rows = [(f"`{argument.metavar}`", "", argument.help or "") for argument in arguments]
    rows += [(spelling(option), default_of(option), option.help or "") for option in options if option.name != "help"]
    yield from table(("Option", "Default", "Meaning"), rows)


def spelling(option: Any) -> str:
    value = "" if option.is_flag else f" {option.metavar or choices(option)}"
    return ", ".join(f"`{name}{value}`" for name in option.opts)


def choices(option: Any) -> str:
    return "|".join(getattr(option.type, "choices", ())) or option.type.name.upper()


def default_of(option: Any) -> str:
    if option.is_flag or option.default is None or callable(option.default):
        return ""
    return f"`{getattr(option.default, 'value', option.default)}`"


COMMAND_LINE_INTRODUCTION = """# Command line

`kstreams COMMAND --help` says what is on this page. `--json` prints one JSON object a line wherever something is listed;
into a pipe, tables are tab-separated text. `NO_COLOR` is honoured. `kstreams --install-completion` sets up completion in
the shell. `--debug`, anywhere on the line, shows stack traces and all log lines.

Exit status: 0 done; 1 the command could not do what was asked, and one sentence on standard error says why; 2 it was
asked wrongly; 130 it was interrupted."""


PAGES: dict[str, Callable[[], Page]] = {
    "configuration.md": configuration,
    "cli.md": command_line,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
