"""The files of the page: they hold no data, so a browser gets them without the token."""

from __future__ import annotations

from importlib.resources import files
from types import MappingProxyType

from starlette.requests import Request
from starlette.responses import Response

from kstreams.diagram.svg import stylesheet
from kstreams.server.endpoint import Endpoint

_TYPES = {"css": "text/css", "html": "text/html", "js": "text/javascript", "svg": "image/svg+xml"}
_FOLDER = files("kstreams.server.ui").joinpath("files")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = MappingProxyType(
    {
        "Content-Security-Policy": _POLICY,
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
)
"""What a browser may do with the page: load from its own server alone, and stand in no other page."""


def page_files() -> tuple[Endpoint, ...]:
    """A route for each file; the page itself is `/ui`."""
    texts = {file.name: file.read_text(encoding="utf-8") for file in _FOLDER.iterdir() if file.is_file()}
    page = _endpoint("/ui", texts.pop("index.html"), "html")
    return (page, *(_file(name, text) for name, text in sorted({**texts, "topology.css": stylesheet()}.items())))


def _file(name: str, text: str) -> Endpoint:
    return _endpoint(f"/ui/{name}", text, name.rpartition(".")[2])


def _endpoint(path: str, text: str, kind: str) -> Endpoint:
    async def answer(request: Request) -> Response:
        return Response(text, media_type=_TYPES[kind], headers=dict(HEADERS))

    return Endpoint(path, "A part of the page that shows the application.", answer, (), (_TYPES[kind],), is_open=True)
