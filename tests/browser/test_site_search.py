"""The documentation's search, in a real browser and from a disk, where no worker may be started."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from chromium import chromium

from checks.docs_site import ROOT, build_site

# Theme, search and scripts of the real site, on two of its pages: so it is built in a second.
SMALL = f"""
INHERIT: {ROOT / "mkdocs.yml"}
docs_dir: docs
hooks: []
nav: [index.md, interval.md]
validation: {{links: {{not_found: ignore}}}}
"""
# A page's address cannot have a question in it on the command line of `chromium`: this one leads there.
ASK = '<!doctype html><script>location.replace("index.html?q=QUERY")</script>'


def test_the_search_finds_what_is_there_and_nothing_else(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs" / "assets", tmp_path / "docs" / "assets")
    for page in ("index.md", "metrics/interval.md"):
        shutil.copy(ROOT / "docs" / page, tmp_path / "docs")
    (tmp_path / "small.yml").write_text(SMALL)
    site = build_site(tmp_path / "site", tmp_path / "small.yml")
    for query, found in (("independent", "1 matching document"), ("qwxzy", "No matching documents")):
        (site / "ask.html").write_text(ASK.replace("QUERY", query))
        shown = chromium(site / "ask.html", "--dump-dom")
        said = re.search(r'<div class="md-search-result__meta">\s*(.*?)\s*</div>', shown, re.DOTALL)
        assert said and re.fullmatch(found, said[1]), query
