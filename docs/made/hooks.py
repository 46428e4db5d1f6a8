"""What mkdocs does to our pages before it sets them.

<!-- made: command_line -->     the page that command_line.py makes from the code takes this line's place
<!-- metrics -->                name, unit, definition and formula of the metrics that the page explains
<!-- study: mnist-mpi -->       the file of a shipped study, whole
<!-- needs: a SLURM cluster --> is shown above the commands that no test can run
[load.py](../src/...)           a file of the repository is not part of the site: its path stays, the link does not
"""

from __future__ import annotations

import logging
import posixpath
import re
from typing import Any

import command_line
import json_page
import metric_pages
import python_page
import record_tables
import study_keys

from paceline.studies.load.load import shipped_studies

PAGES = {module.__name__: module.page for module in (command_line, json_page, python_page, record_tables, study_keys)}
PAGES |= {
    f"metric_{part.__name__}": part
    for part in (metric_pages.glossary, metric_pages.columns, metric_pages.keys, metric_pages.words)
}

_MADE = re.compile(r"^<!-- made: (\w+) -->$", re.MULTILINE)
_METRICS = re.compile(r"^<!-- metrics -->$", re.MULTILINE)
_STUDY = re.compile(r"^<!-- study: ([\w-]+) -->$", re.MULTILINE)
_NEEDS = re.compile(r"^<!-- needs: (.+?) -->$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]\n]+)\]\(((?:\.\./)+[^)#\s]+)(?:#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """A page as it is set: with what is made from the code, and without links that lead out of the site."""
    text = _MADE.sub(lambda found: PAGES[found[1]](), markdown)
    text = _METRICS.sub(lambda found: metric_pages.head(page.file.src_uri), text)
    text = _STUDY.sub(lambda found: _study_file(found[1]), text)
    text = _NEEDS.sub(
        lambda found: f'<p class="needs">Not run by the tests as it stands: needs {found[1]}.</p>\n', text
    )
    return _LINK.sub(lambda found: _inside(found, page.file.src_uri), text)


def _study_file(name: str) -> str:
    """The text of a shipped study's file; a warning, which a strict build does not pass, where there is none."""
    for study in shipped_studies():
        if study.name == name:
            return f"```toml\n{study.path.read_text(encoding='utf-8').strip()}\n```"
    logging.getLogger("mkdocs.hooks").warning("No study called %s is shipped.", name)
    return ""


def _inside(found: re.Match[str], page: str) -> str:
    """A link within the site as it is; of one that leads out of it, its words and the path."""
    words, target = found[1], found[2]
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    if path.startswith("docs/") and not path.startswith("docs/made/"):
        return found[0]
    named = words.strip("`")
    return f"`{path}`" if path.endswith(named) else f"{words} (`{path}`)"
