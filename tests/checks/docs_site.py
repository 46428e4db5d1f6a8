"""The documentation as a site, built as `make docs` does, but into a folder of its own and with no way out."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from checks.ci import in_ci

ROOT = Path(__file__).parents[2]
# A build that asked anybody for anything would be refused at once.
NOWHERE = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")


def build_site(place: Path, config: Path = ROOT / "mkdocs.yml") -> Path:
    """The folder with the built pages; the test fails with mkdocs' own words where it is not strictly right."""
    if importlib.util.find_spec("material") is None:
        reason = "mkdocs-material is not installed: pip install '.[docs]'"
        pytest.fail(reason) if in_ci() else pytest.skip(reason)
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(config), "--site-dir", str(place)],
        cwd=ROOT,
        env=os.environ | NOWHERE | {"NO_MKDOCS_2_WARNING": "1", "PACELINE_CACHE": str(place.parent / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return place
