"""Debian's Chromium without a window: what pages show after their scripts have run, and pictures of them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from html import unescape
from pathlib import Path
from typing import Any

import psutil
import pytest

from checks.ci import in_ci

LIMIT_S = 120
_QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)
_SOON = "--virtual-time-budget=20000"
"""Timers of a page run out at once, and its clock stands still while it computes."""


def require_chromium() -> str:
    """The browser's path; without it the test is skipped, in CI it fails."""
    found = shutil.which("chromium")
    if found is None:
        reason = "chromium is not installed (Debian: apt-get install chromium)"
        pytest.fail(reason) if in_ci() else pytest.skip(reason)
    return found


def quiet_options() -> tuple[str, ...]:
    """Options of a browser without a window that asks nobody for anything."""
    return _QUIET


def chromium(page: Path, *options: str) -> str:
    """What Chromium prints for a page, with a profile of its own that is gone afterwards."""
    browser = require_chromium()
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        command = [browser, *_QUIET, _SOON, f"--user-data-dir={profile}", *options, page.as_uri()]
        # A session of its own, so that the browser's helpers can be ended with it.
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        finally:
            end_session(process)
    assert process.returncode == 0, err
    return out


def end_session(process: subprocess.Popen[Any]) -> None:
    """Wait for the browser's helpers, which end a moment after it; kill what of its own session is left."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    deadline = time.monotonic() + 5
    while _alive_in(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _alive_in(group: int) -> bool:
    """Whether a process of a group runs; what has ended and was not waited for does not."""
    for each in psutil.process_iter(["status"]):
        with contextlib.suppress(OSError):
            if each.info["status"] != psutil.STATUS_ZOMBIE and os.getpgid(each.pid) == group:
                return True
    return False


_INSPECTOR = """<!doctype html><body><script>
const frames = WIDTHS.map(([name, width]) => {
  const frame = document.createElement("iframe");
  Object.assign(frame, { src: name, width, height: 900 });
  return document.body.appendChild(frame);
});
const count = (place, marks) => place.querySelectorAll(marks).length;
const seen = (frame) => {
  const page = frame.contentDocument, root = page.documentElement;
  const plots = [...page.querySelectorAll("[data-figure]")].map((place) => [place.dataset.figure, {
    drawings: count(place, ".main-svg"), marks: count(place, ".point path, path.point, .js-line"),
    width: place.clientWidth, drawn: place.querySelector(".main-svg")?.clientWidth,
    ink: place.querySelector(".xtick text")?.style.fill,
  }]);
  return { ...root.dataset, figures: Object.fromEntries(plots), wide: root.scrollWidth, room: root.clientWidth,
    requests: frame.contentWindow.performance.getEntriesByType("resource").length };
};
const done = (frame) => frame.contentDocument?.documentElement.dataset.drawn !== undefined;
addEventListener("load", () => {
  const timer = setInterval(() => {
    if (!frames.every(done)) return;
    clearInterval(timer);
    document.documentElement.dataset.seen = JSON.stringify(frames.map(seen));
  }, 200);
});
</script>"""


def inspected(folder: Path, pages: list[tuple[str, int]], *options: str) -> list[dict[str, Any]]:
    """What each page of a folder shows in a frame of the given width: its plots, its size and its errors."""
    inspector = folder / "inspector.html"
    inspector.write_text(_INSPECTOR.replace("WIDTHS", json.dumps(pages)))
    # Lets the inspector look into its frames; the pages themselves are closed by their own policy.
    text = chromium(inspector, "--allow-file-access-from-files", "--dump-dom", *options)
    found = re.search(r'data-seen="([^"]*)"', text)
    assert found, "a page did not finish drawing"
    return json.loads(unescape(found[1]))
