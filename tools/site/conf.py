"""The configuration of Sphinx for the site of the documentation. `python -m tools.site` uses it."""

import re
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from tools.site.api import public_names

project = "kstreams"
author = "The kstreams authors"
copyright = "The kstreams authors, Apache-2.0"
version = release = version_of("kstreams-dsl")
language = "en"
root_doc = "index"

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_copybutton"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["files", ".doctrees"]
myst_heading_anchors = 4
highlight_language = "text"
suppress_warnings = ["ref.python"]  # `type` in a signature is the built-in, not an attribute of this name
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
copybutton_exclude = ".linenos, .gp, .go"

_HERE = Path(__file__).parent
html_theme = "furo"
html_title = f"kstreams {version}"
html_static_path = [str(_HERE / "static")]
templates_path = [str(_HERE / "templates")]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_search_summary = False  # it would read pages by requests, which a browser refuses to pages of files
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
        "versions.html",
    ]
}


PUBLIC = frozenset(name.name for name in public_names("kstreams"))
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)(\w?)")


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", read_backticks_as_code, priority=400)  # before numpydoc
    app.connect("html-page-context", show_parameters_as_lines)


def read_backticks_as_code(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Turn the code between single backticks of a docstring into a link to a public name, or into a literal."""
    lines[:] = [line if line.lstrip().startswith((">>>", "...")) else _CODE.sub(_code, line) for line in lines]


def _code(match: re.Match[str]) -> str:
    code, letter = match.groups()
    public = code.removeprefix("ks.").partition("(")[0]
    text = f":py:obj:`{code} <kstreams.{public}>`" if public in PUBLIC else f"``{code}``"
    return f"{text}\\ {letter}" if letter else text


def show_parameters_as_lines(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Tell screen readers that a signature over several lines, which Sphinx writes as a `dl`, defines nothing."""
    body = context.get("body", "").replace(f"<dl>\n{PARAMETER}", f'<dl role="presentation">\n{PARAMETER}')
    context["body"] = body.replace(PARAMETER, '<dd role="presentation"><em class="sig-param">')


PARAMETER = '<dd><em class="sig-param">'
