"""HTML from templates that escape every value they show.

Line breaks and indentation of a template are not part of its output: between tags they are dropped, elsewhere they
are one space. Jinja2 is imported when the first template is used.
"""

from __future__ import annotations

import importlib.resources
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from paceline.units import percent_text

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

HOME = "paceline.reporting"


def fragment(template: str, macro: str, *values: object, package: str = HOME, **more: object) -> Markup:
    """The HTML that a macro of a template makes from values; `package` has the template in its folder `templates`."""
    return getattr(_environment(package).get_template(f"{template}.html.j2").module, macro)(*values, **more)


def text_html(text: str) -> Markup:
    """Escaped text in which a sign stays on the line of its number."""
    from markupsafe import Markup, escape

    return Markup(escape(text).replace(" %", "\u00a0%").replace("± ", "±\u00a0").replace(" ×", "\u00a0×"))


def slug(text: str, *, otherwise: str = "table") -> str:
    """A file name of lower-case letters, digits and hyphens, made from a text."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return "-".join(words)[:48].strip("-") or otherwise


@cache
def _environment(package: str) -> Environment:
    """Templates of a package, and those of the report."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    from paceline.reporting.figures import legend
    from paceline.reporting.wording.facts import meanings

    def source(name: str) -> str | None:
        for home in dict.fromkeys((package, HOME)):
            path = importlib.resources.files(home) / "templates" / name
            if path.is_file():
                return _joined(path.read_text(encoding="utf-8"))
        return None

    made = Environment(loader=FunctionLoader(source), autoescape=True, undefined=StrictUndefined)
    made.filters["text"] = text_html
    made.filters["percent"] = lambda value: percent_text(value, 0).replace(" ", "\u00a0")
    names: dict[str, Any] = {"slug": slug, "meanings": meanings}
    made.globals |= names | {name: getattr(legend, name) for name in ("MARKERS", "DASHES", "PATTERNS")}
    return made


def _joined(source: str) -> str:
    return re.sub(r"\s*\n\s*", " ", re.sub(r"(?<=[>}])\s*\n\s*|\s*\n\s*(?=[<{]|$)", "", source))
