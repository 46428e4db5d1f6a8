"""Chromium driven by hand: real wheels, keys and pointers on a page, through the pipe of its DevTools protocol."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chromium import LIMIT_S, end_session, quiet_options, require_chromium

_READ = 1 << 16
_HIGH = 10
_SHIFT = 8
# Keys that do something: their codes, and the characters that go with them.
_CODES = {"Tab": (9, ""), "Enter": (13, "\r"), "Escape": (27, ""), " ": (32, " ")}


class Browser:
    """One page in a browser of its own."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._number = 0
        self._buffer = b""
        self._session: str | None = None
        self.heard: list[dict[str, Any]] = []
        """What the browser said without being asked: console, exceptions, requests, dialogs."""

    def open(self, page: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Load a page in a window of this size, and wait until its scripts have run."""
        if self._session is None:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.heard.clear()
        self.call("Page.navigate", url=page.as_uri())
        self.until("document.documentElement?.dataset.drawn !== undefined")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask for something, and bring the answer."""
        number = self._send(method, parameters)
        deadline = time.monotonic() + LIMIT_S
        while True:
            said = self._next(deadline)
            if said.get("id") == number:
                assert "error" not in said, (method, said["error"])
                return said["result"]
            if "method" in said:
                self.heard.append(said)
            if said.get("method") == "Page.javascriptDialogOpening":  # it would hold up everything else
                self._send("Page.handleJavaScriptDialog", {"accept": False})

    def _send(self, method: str, parameters: dict[str, Any]) -> int:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None and not method.startswith("Browser."):
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        return self._number

    def value(self, expression: str) -> Any:
        """What an expression of the page comes to; promises are waited for."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def until(self, condition: str, limit_s: float = LIMIT_S) -> None:
        """Wait until a condition of the page holds."""
        deadline = time.monotonic() + limit_s
        while not self.value(f"Boolean({condition})"):
            assert time.monotonic() < deadline, f"still not so: {condition}"
            time.sleep(0.05)

    def box(self, selector: str) -> dict[str, float]:
        """Where something is in the window, scrolled to: its middle, its corner and its size."""
        return self.value(
            f"(() => {{ const place = document.querySelector({selector!r}); place.scrollIntoView({{block: 'center'}});"
            "const box = place.getBoundingClientRect();"
            "return {x: box.left + box.width / 2, y: box.top + box.height / 2, left: box.left, top: box.top, "
            "width: box.width, height: box.height}; })()"
        )

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """mouseMoved, mousePressed, mouseReleased or mouseWheel at a place of the window."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float, times: int = 1) -> None:
        """Press and release the left button, once or twice."""
        for count in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.mouse(kind, x, y, button="left", clickCount=count)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press the left button at one place and release it at another."""
        self.mouse("mousePressed", *start, button="left", clickCount=1)
        for part in (0.5, 1.0):
            x, y = (a + part * (b - a) for a, b in zip(start, end, strict=True))
            self.mouse("mouseMoved", x, y, button="left", buttons=1)
        self.mouse("mouseReleased", *end, button="left", clickCount=1)

    def key(self, name: str, *, shift: bool = False) -> None:
        """Press and release a key."""
        code, text = _CODES.get(name, (0, name if len(name) == 1 else ""))
        more = {"windowsVirtualKeyCode": code, "code": name} if code else {}
        modifiers = _SHIFT if shift else 0
        typed = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, modifiers=modifiers, **more, **typed)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, modifiers=modifiers, **more)

    def saved(self, folder: Path, act: str, name: str) -> bytes:
        """The file of this name that an expression of the page makes the browser save."""
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder), eventsEnabled=True)
        self.value(f"{act}; 0")
        deadline = time.monotonic() + LIMIT_S
        while not (folder / name).is_file():
            assert time.monotonic() < deadline, f"{name} was not saved; there is {[p.name for p in folder.iterdir()]}"
            time.sleep(0.05)
        return (folder / name).read_bytes()

    def paper(self) -> bytes:
        """The page as PDF, printed with its backgrounds left out as browsers do."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"])

    def picture(self, path: Path, clip: dict[str, float] | None = None) -> None:
        """Save what the window shows, or a part of the page."""
        part = {"clip": {**clip, "scale": 1}, "captureBeyondViewport": True} if clip else {}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png", **part)["data"]))

    def complaints(self) -> list[dict[str, Any]]:
        """Errors and warnings of the console, exceptions, dialogs, requests for anything but the page and its data."""
        self.value("0")
        wrong = []
        for said in self.heard:
            parameters = said["params"]
            if said["method"] == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if not (url.startswith(("data:", "blob:")) or parameters.get("type") == "Document"):
                    wrong.append(said)
            elif said["method"] == "Runtime.consoleAPICalled":
                wrong += [said] if parameters["type"] in ("error", "warning") else []
            elif said["method"] in ("Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening"):
                wrong.append(said)
        return wrong

    def _next(self, deadline: float) -> dict[str, Any]:
        """The next message of the browser: JSON up to a zero byte."""
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._reading], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser says nothing any more"
            read = os.read(self._reading, _READ)
            assert read, "the browser has ended"
            self._buffer += read
        text, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(text)


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A browser that is gone afterwards, with all its helpers and its profile."""
    program = require_chromium()
    (to_browser, from_test), (to_test, from_browser) = _pipe(), _pipe()
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        # The protocol wants descriptors 3 and 4; the shell puts them there.
        script = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        options = [*quiet_options(), "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(
            ["bash", "-c", script, "bash", program, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(to_browser, from_browser),
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Browser(to_test, from_test)
        finally:
            os.close(from_test)
            os.close(to_test)
            end_session(process)


def _pipe() -> tuple[int, int]:
    """The two ends of a pipe, at numbers that a shell does not use for itself."""
    ends = os.pipe()
    reading, writing = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _HIGH) for end in ends)
    for end in ends:
        os.close(end)
    return reading, writing
