"""Applications in packages: by file or by module name, with relative imports, siblings, and `src` folders."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kstreams.app import load_app

RULES = """
import dataclasses

LOADED = []


def shout(word):
    return word.upper()
"""
APP = """
import kstreams as ks

{imports}

topology = ks.StreamsBuilder()
words = topology.stream("words", key=str, value=str)
words.map_values({function}, value=str).to("shouts")
"""
RELATIVE = APP.format(imports="from .rules import shout", function="shout")
COMMAND = str(Path(sys.executable).with_name("kstreams"))


def write(folder: Path, **files: str) -> None:
    """Files by their paths without the ending; with `__` for `/`, unless there is one."""
    for name, text in files.items():
        path = folder / f"{name if '/' in name else name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def init(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").touch()


def shouts(kstreams: Any, *command: str) -> list[str]:
    kstreams.ok("topics", "create", "words")
    kstreams.ok("produce", "words", stdin="one\ntwo\n")
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    rows = kstreams.ok("consume", "shouts", "--from-beginning", "--until-end", "--json").json_lines()
    return sorted(row["value"] for row in rows)


@pytest.mark.parametrize("has_init", [True, False], ids=["package", "no __init__"])
@pytest.mark.parametrize("name", ["pkg/app.py", "pkg.app", "pkg.app:topology"])
def test_a_package_runs_by_its_file_and_by_its_name(kstreams: Any, name: str, has_init: bool) -> None:
    write(kstreams.folder, pkg__app=RELATIVE, pkg__rules=RULES)
    if has_init:
        init(kstreams.folder / "pkg")
    assert shouts(kstreams, COMMAND, "run", name, "--once") == ["ONE", "TWO"]


LAYOUTS = {
    "imports of the folder above": (
        "shop/flows/app.py",
        {"shop__flows__app": APP.format(imports="from ..rules import shout", function="shout"), "shop__rules": RULES},
    ),
    "an absolute import of its own package": (
        "pkg/app.py",
        {"pkg__app": APP.format(imports="from pkg.rules import shout", function="shout"), "pkg__rules": RULES},
    ),
    "src, by file": ("src/pkg/app.py", {"src__pkg__app": RELATIVE, "src__pkg__rules": RULES}),
    "src, by name": ("pkg.app", {"src__pkg__app": RELATIVE, "src__pkg__rules": RULES}),
    "a module by name": (
        "flow",
        {"flow": APP.format(imports="from rules import shout", function="shout"), "rules": RULES},
    ),
    "a sibling": (
        "jobs/app.py",
        {"jobs__app": APP.format(imports="from rules import shout", function="shout"), "jobs__rules": RULES},
    ),
    "the current folder": (
        "jobs/app.py",
        {"jobs__app": APP.format(imports="from common.rules import shout", function="shout"), "common__rules": RULES},
    ),
    "a folder within a package": (
        "pkg.flows.app",
        {
            "pkg/__init__": "",
            "pkg/flows/app": APP.format(imports="from ..rules import shout", function="shout"),
            "pkg/rules": RULES,
        },
    ),
    "a package as a module": ("pkg", {"pkg/__init__": RELATIVE, "pkg/rules": RULES}),
    "a folder that has the name of an installed package": (
        "msgspec/app.py",
        {"msgspec__app": APP.format(imports="import msgspec.json", function="str.upper")},
    ),
    "a file that has the name of a module of Python": (
        "statistics.py",
        {"statistics": APP.format(imports="", function="str.upper")},
    ),
}


@pytest.mark.parametrize("has_init", [True, False], ids=["package", "no __init__"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, has_init: bool) -> None:
    name, files = LAYOUTS[layout]
    write(tmp_path, **files)
    for folder in {file.partition("__")[0] for file in files if "__" in file and "/" not in file}:
        if has_init and folder not in ("src", "jobs", "msgspec"):
            init(tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    done = subprocess.run([COMMAND, "topology", name], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "topic: shouts" in done.stdout


@pytest.fixture
def shop(kstreams: Any) -> Any:
    """A package with an application, which notes each time that it is imported."""
    init(kstreams.folder / "shop_flows")
    note = "from . import rules\nrules.LOADED.append(__name__)\n"
    write(kstreams.folder, shop_flows__app=note + RELATIVE, shop_flows__rules=RULES)
    return kstreams


@pytest.mark.parametrize("name", ["shop_flows/app.py", "shop_flows.app"])
def test_what_a_test_imports_by_its_package_is_the_module_that_is_loaded(
    shop: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.syspath_prepend(str(shop.folder))
    module = importlib.import_module("shop_flows.app")
    load_app(name)
    assert module.rules.LOADED == ["shop_flows.app"]
    assert sys.modules["shop_flows.app"] is module
    assert "app" not in vars(module.rules)


def test_a_file_that_changed_is_loaded_anew(shop: Any) -> None:
    load_app("shop_flows/app.py")
    changed = (shop.folder / "shop_flows/app.py").read_text().replace("shouts", "changed")
    (shop.folder / "shop_flows/app.py").write_text(changed)
    assert "topic: changed" in load_app("shop_flows/app.py").topology.describe()


def test_python_m_runs_an_application_that_starts_itself(kstreams: Any) -> None:
    init(kstreams.folder / "pkg")
    main = """
if __name__ == "__main__":
    with ks.KafkaStreams(topology, {"application.id": "pkg"}) as streams:
        streams.start(once=True)
        streams.wait()
"""
    write(kstreams.folder, pkg__app=RELATIVE + main, pkg__rules=RULES)
    assert shouts(kstreams, sys.executable, "-m", "pkg.app") == ["ONE", "TWO"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pgk.app", "no module pgk in {folder} or where else Python looks (PYTHONPATH): did you mean pkg.app?"),
        ("pkg.ap", "there is no module pkg.ap: did you mean pkg.app?"),
        ("pkg/ap.py", "there is no file pkg/ap.py: did you mean pkg/app.py?"),
        ("pkg.app:flow", "pkg.app holds no 'flow'; name another one as pkg.app:name"),
        ("pkg.app:topologie", "did you mean pkg.app:topology?"),
        ("plain", "plain is a folder: name the Python file in it, such as plain/app.py"),
        ("plain/far.py", "from " + "." * 40 + "rules reaches above the folders of plain/far.py"),
        ("lonely.app", "lonely/app.py:4 cannot be loaded: ModuleNotFoundError: No module named 'lonely.rules'"),
        ("my-app/app.py", "my-app can be no name of a package: rename the folder"),
        ("broken.app", "cannot be loaded: ModuleNotFoundError: No module named 'nowhere'"),
        ("shadowing/app.py", "shadowing/colorsys.py is imported in place of Python's own module colorsys: rename it"),
        ("json/app.py", "the package json is imported already from"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded_is_a_sentence(kstreams: Any, name: str, said: str) -> None:
    init(kstreams.folder / "pkg")
    init(kstreams.folder / "json")
    (kstreams.folder / "broken").mkdir()
    (kstreams.folder / "broken" / "__init__.py").write_text("import nowhere")
    plain = APP.format(imports="", function="str.upper")
    far = APP.format(imports="from " + "." * 40 + "rules import shout", function="shout")
    write(kstreams.folder, pkg__app=plain, plain__far=far, lonely__app=RELATIVE)
    write(kstreams.folder, **{"my-app__app": RELATIVE, "my-app__rules": RULES, "broken__app": plain})
    write(
        kstreams.folder,
        shadowing__app="from colorsys import rgb_to_hls\n" + plain,
        shadowing__colorsys="",
        json__app=plain,
    )
    if name == "shadowing/app.py":
        done = subprocess.run([COMMAND, "topology", name], check=False, capture_output=True, text=True, timeout=60)
        status, text = done.returncode, done.stderr
    else:
        outcome = kstreams("topology", name)
        status, text = outcome.status, outcome.err
    assert status == 1
    assert said.format(folder=kstreams.folder) in text
    assert "please report" not in text


def test_two_versions_in_two_folders_have_siblings_of_their_own(kstreams: Any) -> None:
    app = APP.format(imports="from rules import TOPIC", function="str.upper").replace('"shouts"', "TOPIC")
    write(kstreams.folder, old__app=app, old__rules="TOPIC = 'before'", app=app, rules="TOPIC = 'after'")
    shown = [load_app(name).topology.describe() for name in ("old/app.py", "app.py", "old/app.py")]
    assert ["topic: before" in text for text in shown] == [True, False, True]


def test_a_module_under_two_names_is_told(kstreams: Any) -> None:
    init(kstreams.folder / "twice")
    write(kstreams.folder, twice__app="import rules\n" + RELATIVE, twice__rules=RULES)
    done = subprocess.run([COMMAND, "topology", "twice.app"], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "rules.py is imported twice, as rules and as twice.rules" in done.stderr
