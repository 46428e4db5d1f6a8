"""One HTML file that opens offline: style, data, its own scripts and Plotly's are in it.

A policy in the page forbids every request and every script but those whose digests it names, so
that even text that slipped through escaping could not run. Plotly's script is read from its
installed package, which is never imported.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import importlib.util
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.errors import StorageError
from paceline.reporting.figures.canvas import Figure
from paceline.reporting.html.markup import fragment, slug

if TYPE_CHECKING:
    from markupsafe import Markup

_OWN = ("page", "plots", "looking", "saving")
_TIMELINE = ("timeline_lanes", "timeline_drawing", "timeline_words", "timeline")
_BROWSERS_END_SCRIPT_AT = re.compile(r"<(?=/script|!--)", re.IGNORECASE)


def page(
    *, title: str, name: str, body: Markup, drawn: Iterable[Figure], timelines: Iterable[dict[str, Any]] | None = None
) -> str:
    """The text of a page; `timelines` is None where it has no runs to look into."""
    own = [_bundle(_OWN), *([_bundle(_TIMELINE)] if timelines is not None else [])]
    # Plotly's is by far the largest, and last: what does not need it is there before it is read.
    scripts = [_script(text) for text in (*own, _plotly())]
    made = fragment(
        "page",
        "page",
        policy=_policy(*scripts),
        title=title,
        slug=slug(name, otherwise="study"),
        style=_style(),
        body=body,
        figures=embedded_json({figure.name: _embedded(figure) for figure in drawn}),
        timelines=embedded_json(list(timelines or ())),
        scripts=scripts,
    )
    return str(made)


def embedded_json(value: object) -> str:
    """JSON that cannot end the script element around it; what is not a number becomes an error here, not there."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _embedded(figure: Figure) -> dict[str, Any]:
    numbers = figure.numbers
    saved_numbers = {"numbers": {"columns": numbers.columns, "rows": numbers.rows}} if numbers else {}
    return {"data": figure.data, "layout": figure.layout, **saved_numbers}


def _policy(*scripts: str) -> str:
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    # Plotly styles what it draws by attributes; images are the plots that a reader saves.
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _script(text: str) -> str:
    """A script as an element can hold it: `<\\/script` is the same to JavaScript, and not the end of it."""
    return _BROWSERS_END_SCRIPT_AT.sub(r"<\\", text.replace("\r\n", "\n").replace("\r", "\n"))


def _plotly() -> str:
    found = importlib.util.find_spec("plotly")
    places = list(found.submodule_search_locations or ()) if found else []
    for place in places:
        path = Path(place) / "package_data" / "plotly.min.js"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise StorageError(
        f"The plots need plotly.min.js, and it is not in {', '.join(places) or 'any installed package'}.",
        right="It comes with the package plotly, version 6 or newer.",
        next="Install it again: pip install --force-reinstall plotly",
    )


def _bundle(names: Iterable[str]) -> str:
    """Scripts as one, whose names are nobody else's."""
    parts = "\n".join(_asset(f"{name}.js") for name in names)
    return f'(() => {{\n"use strict";\n{parts}}})();'


def _style() -> str:
    """The style sheet; dark colours where the screen asks for them, or the reader does."""
    dark = _asset("dark.css")
    return (
        f"{_asset('light.css')}"
        f"@media screen and (prefers-color-scheme: dark) {{\n:root:not(.paper, [data-theme]) {{\n{dark}}}\n}}\n"
        f'@media screen {{\n:root[data-theme="dark"]:not(.paper) {{\n{dark}}}\n}}\n'
        f"{_asset('report.css')}{_asset('first.css')}{_asset('inside.css')}{_asset('print.css')}"
    )


def _asset(name: str) -> str:
    return (importlib.resources.files("paceline.reporting") / "assets" / name).read_text(encoding="utf-8")
