"""The timeline in a real browser, with real wheels, keys and pointers: what it shows, and how fast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from devtools import Browser, browser

from paceline.analyze.views.picture import picture
from paceline.records.run_picture import Picture
from paceline.records.trace_summary import RunTrace
from paceline.reporting.html import report_page
from paceline.reporting.model import report_model
from samples.picture_samples import SPANS_PER_STEP, STARTUP_NS, STEP_NS, busy_run, looked_into
from samples.trace_samples import run_of, trace_of

GUTTER = 76  # of assets/timeline_drawing.js: what stands left of the lanes
DESKTOP, PHONE = 1280, 390
RIGHT, CTRL = 1, 2
SLOW_MS = 500  # a frame takes some 10 ms; this machine may be doing much else


@dataclass
class Shown:
    """A page with a timeline, and where that is on it."""

    page: Browser
    box: dict[str, float]

    @classmethod
    def of(cls, page: Browser, canvas: str = "[data-lanes]") -> Shown:
        """Scrolled to, so that events reach it."""
        found = page.value(
            f"(() => {{ const place = document.querySelector('{canvas}'); place.scrollIntoView({{block: 'center'}});"
            "const box = place.getBoundingClientRect();"
            "return {left: box.left, top: box.top, width: box.width, height: box.height}; })()"
        )
        return cls(page, found)

    def settle(self) -> None:
        """Wait for the next frame."""
        self.page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    @property
    def data(self) -> dict[str, float]:
        """What the timeline says of itself: from, to, frame, boxes."""
        self.settle()
        found = self.page.value("({...document.querySelector('[data-run]:not([hidden]) [data-timeline]').dataset})")
        return {name: float(value) for name, value in found.items()}

    @property
    def range(self) -> tuple[float, float]:
        """The seconds that are in view."""
        data = self.data
        return data["from"], data["to"]

    def x(self, part: float) -> float:
        """The pixel at which so much of the view lies to the left."""
        return self.box["left"] + GUTTER + part * (self.box["width"] - GUTTER)

    def y(self, down: float) -> float:
        return self.box["top"] + down

    def at(self, instant_s: float) -> float:
        """The pixel of an instant."""
        begin, end = self.range
        return self.x((instant_s - begin) / (end - begin))

    def whole(self) -> tuple[float, float]:
        """Show the whole run again, with the keyboard."""
        self.page.value("document.querySelector('[data-run]:not([hidden]) [data-lanes]').focus()")
        self.page.key("Home")
        return self.range

    def tip(self) -> list[str]:
        self.settle()
        text = "(() => { const tip = document.querySelector('.tip'); return tip.hidden ? '' : tip.innerText; })()"
        return self.page.value(text).split("\n")


def write_page(path: Path, run: RunTrace, drawn: Picture, **others: Picture) -> None:
    results = looked_into(run)
    by_label = {point.label: point.point_id for point in results.points}
    pictures = {results.points[-1].point_id: drawn, **{by_label[label]: other for label, other in others.items()}}
    path.write_bytes(report_page.render(report_model(results, pictures)).encode())


@pytest.fixture(scope="module")
def page() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def many(page: Browser, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """Four ranks, more than 100,000 spans, none of them merged."""
    run = busy_run(4, 100_000 // (4 * SPANS_PER_STEP) + 1)
    drawn = picture(run, 200_000)
    assert sum(map(len, run.traces)) > 100_000 and drawn.shown == drawn.parts > 100_000
    path = tmp_path_factory.mktemp("many") / "page.html"
    write_page(path, run, drawn)
    page.open(path, width=DESKTOP)
    return Shown.of(page)


def test_a_hundred_thousand_spans_are_drawn_fluently(many: Shown) -> None:
    begin, end = many.whole()
    assert (begin, end) == (0, pytest.approx((STARTUP_NS + 3573 * STEP_NS) / 1e9, abs=0.002))
    frames = []
    for _ in range(6):
        many.page.key("+")
        frames.append(many.data["frame"])
        assert 500 < many.data["boxes"] < DESKTOP * 4 * 2 * 10
    assert min(frames) < SLOW_MS, frames


def test_the_wheel_zooms_around_the_pointer_once_the_timeline_was_clicked(many: Shown) -> None:
    begin, end = many.whole()
    many.page.value("document.activeElement.blur()")
    x, y = many.x(0.25), many.y(60)
    many.page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-120)
    assert many.range == (begin, end)  # the page scrolls past
    many.box = Shown.of(many.page).box
    x, y = many.x(0.25), many.y(60)
    many.page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-120, modifiers=CTRL)
    once = many.range
    assert once[1] - once[0] < 0.8 * (end - begin)
    many.page.click(x, y)
    many.page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-120)
    twice = many.range
    assert twice[1] - twice[0] < 0.8 * (once[1] - once[0])
    under = begin + 0.25 * (end - begin)
    assert twice[0] + 0.25 * (twice[1] - twice[0]) == pytest.approx(under, abs=0.01 * (end - begin))


def test_dragging_moves_and_a_double_click_shows_everything(many: Shown) -> None:
    whole = many.whole()
    for _ in range(4):
        many.page.key("ArrowUp")
    begin, end = many.range
    y = many.y(60)
    many.page.mouse("mousePressed", many.x(0.5), y, button="left", clickCount=1)
    many.page.mouse("mouseMoved", many.x(0.25), y, button="left", buttons=1)
    many.page.mouse("mouseReleased", many.x(0.25), y, button="left", clickCount=1)
    moved = many.range
    assert moved[0] - begin == pytest.approx(0.25 * (end - begin), rel=0.02)
    assert moved[1] - moved[0] == pytest.approx(end - begin)
    many.page.click(many.x(0.5), y, times=2)
    assert many.range == whole


def test_the_keyboard_does_the_same(many: Shown) -> None:
    begin, end = many.whole()
    many.page.key("ArrowUp")
    near = many.range
    assert near[1] - near[0] == pytest.approx(0.7 * (end - begin))
    many.page.key("ArrowLeft")
    assert many.range[0] < near[0]
    many.page.key("-")
    assert many.range[1] - many.range[0] > near[1] - near[0]
    for _ in range(80):
        many.page.key("+")
    assert 0 < many.range[1] - many.range[0] < 1e-6  # there is an end to it, and it draws


def test_the_overview_marks_a_stretch(many: Shown) -> None:
    _, end = many.whole()
    small = Shown.of(many.page, "[data-overview]")
    y = small.y(10)
    small.page.mouse("mousePressed", small.x(0.25), y, button="left", clickCount=1)
    small.page.mouse("mouseMoved", small.x(0.5), y, button="left", buttons=1)
    small.page.mouse("mouseReleased", small.x(0.5), y, button="left", clickCount=1)
    marked = small.range
    assert marked == (pytest.approx(0.25 * end, rel=0.02), pytest.approx(0.5 * end, rel=0.02))
    small.page.mouse("mousePressed", small.x(0.375), y, button="left", clickCount=1)
    small.page.mouse("mouseMoved", small.x(0.625), y, button="left", buttons=1)
    small.page.mouse("mouseReleased", small.x(0.625), y, button="left", clickCount=1)
    assert small.range == (pytest.approx(0.5 * end, rel=0.02), pytest.approx(0.75 * end, rel=0.02))
    many.box = Shown.of(many.page).box


def test_several_parts_in_a_pixel_are_told_as_shares(many: Shown) -> None:
    many.whole()
    many.page.mouse("mouseMoved", many.x(0.5), many.y(53))
    first, *shares = many.tip()
    assert first.endswith("parts of rank 0 in this pixel")
    kinds = {text.rsplit(" ", 2)[0]: int(text.rsplit(" ", 2)[1].strip("<")) for text in shares}
    # Of a step of 1 ms: 0.18 ms forward, 0.25 to 0.45 ms backward.
    assert kinds["forward"] == pytest.approx(18, abs=3) and 25 <= kinds["backward"] <= 45


def test_it_asks_for_nothing_and_complains_of_nothing(many: Shown) -> None:
    assert many.page.complaints() == []
    assert "errors" not in many.page.value("({...document.documentElement.dataset})")


@pytest.fixture(scope="module")
def few(page: Browser, many: Shown, tmp_path_factory: pytest.TempPathFactory) -> tuple[Shown, RunTrace, Path]:
    """Two ranks on two hosts whose clocks agree to 30 µs, five steps; and the same run with everything merged."""
    run = busy_run(2, 5, hosts=("node-a", "node-b"), clock_error_ns=30_000)
    path = tmp_path_factory.mktemp("few") / "page.html"
    write_page(path, run, picture(run), **{"1 rank": picture(busy_run(2, 400), 1200)})
    page.open(path, width=DESKTOP)
    return Shown.of(page), run, path


def test_the_tooltip_is_about_the_span_under_the_pointer(few: tuple[Shown, RunTrace, Path]) -> None:
    shown, run, _ = few
    middle_s = (STARTUP_NS + 2 * STEP_NS + 110_000) / 1e9
    shown.page.mouse("mouseMoved", shown.at(middle_s), shown.y(53))
    assert shown.tip()[:2] == ["forward, 180 µs", "rank 0, step 2, at 0.007020 s"]
    # Two pixels on either side of its beginning.
    for after_ns, kind in ((-10_000, "input-wait, 20.0 µs"), (12_000, "forward, 180 µs")):
        shown.page.mouse("mouseMoved", shown.at(middle_s - (90_000 - after_ns) / 1e9), shown.y(53))
        assert shown.tip()[0] == kind
    # Rank 1 lies lower, and its message below it.
    message = run.traces[1].kind == 9
    issued, ended = (int(column[message][3]) for column in (run.traces[1].start_ns, run.traces[1].end_ns))
    shown.page.mouse("mouseMoved", shown.at((ended - 10_000) / 1e9), shown.y(40 + 51 + 33))
    first, second, third, *_ = shown.tip()
    assert first == "allreduce_, 2.8 MB of float32, group 0"
    assert second == f"rank 1, messages, step 3, issued at {issued / 1e9:.6f} s"
    assert third.endswith("in all")
    shown.page.mouse("mouseMoved", shown.at(middle_s), 5)
    assert shown.tip() == [""]


def test_a_wait_shorter_than_the_clocks_error_is_not_claimed(few: tuple[Shown, RunTrace, Path]) -> None:
    shown, run, _ = few
    message = run.traces[0].kind == 9
    gaps = run.traces[1].start_ns[message] - run.traces[0].start_ns[message]
    for rank, wait_ns in ((0, gaps), (1, -gaps)):
        step = int(wait_ns.argmin())
        assert wait_ns[step] < 0  # this rank was the last
        at = int(run.traces[rank].start_ns[message][step]) + 60_000
        shown.page.mouse("mouseMoved", shown.at(at / 1e9), shown.y(40 + 51 * rank + 33))
        assert shown.tip()[-1] == "waited less than 30.0 µs for the last rank, moved for 120 µs"


def colour_at(shown: Shown, x: float, y: float) -> list[int]:
    """Of a pixel of the lanes."""
    return shown.page.value(
        "[...document.querySelector('[data-lanes]').getContext('2d')"
        f".getImageData({x - shown.box['left']}, {y - shown.box['top']}, 1, 1).data].slice(0, 3)"
    )


def variable(shown: Shown, name: str) -> list[int]:
    value = shown.page.value(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")
    return [int(value[n : n + 2], 16) for n in (1, 3, 5)]


def test_colours_are_those_of_the_ledger_in_light_and_dark(few: tuple[Shown, RunTrace, Path]) -> None:
    shown, _, _ = few
    found = {}
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        shown.page.call("Emulation.setEmulatedMedia", features=features)
        shown.settle()
        x = shown.at((STARTUP_NS + STEP_NS + 60_000) / 1e9)
        found[scheme] = colour_at(shown, x, shown.y(43))
        assert found[scheme] == variable(shown, "sky")
    assert found["light"] != found["dark"]
    shown.page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    shown.page.heard.clear()  # the browser warns of pixels that are read back, which only this test does


def test_another_run_can_be_chosen_and_says_what_is_merged(few: tuple[Shown, RunTrace, Path]) -> None:
    shown, _, _ = few
    shown.page.value(
        "(() => { const choice = document.querySelector('[data-choose]'); choice.selectedIndex = 1;"
        "choice.dispatchEvent(new Event('change')); })()"
    )
    visible = shown.page.value("[...document.querySelectorAll('[data-run]')].map((run) => run.hidden)")
    assert visible == [True, False]
    other = Shown.of(shown.page, "[data-run]:not([hidden]) [data-lanes]")
    begin, end = other.whole()
    assert end == pytest.approx((STARTUP_NS + 401 * STEP_NS) / 1e9, abs=1e-6)
    assert other.data["boxes"] > 0
    shown.page.value("document.querySelector('[data-run]:not([hidden]) [data-act=full]').click()")
    near = other.range
    assert near[1] - near[0] < 0.05 * (end - begin)
    shown.page.value(
        "(() => { const choice = document.querySelector('[data-choose]'); choice.selectedIndex = 0;"
        "choice.dispatchEvent(new Event('change')); })()"
    )
    assert shown.page.complaints() == []


def test_it_fits_a_phone_and_prints(few: tuple[Shown, RunTrace, Path]) -> None:
    shown, _, path = few
    shown.page.open(path, width=PHONE)
    size: dict[str, Any] = shown.page.value(
        "({wide: document.documentElement.scrollWidth, canvas: document.querySelector('[data-lanes]').clientWidth})"
    )
    assert size["wide"] <= PHONE and 200 < size["canvas"] < PHONE
    before = Shown.of(shown.page).range
    # Printing draws it anew for white paper, and then for the screen again.
    paper = shown.page.call("Page.printToPDF", printBackground=True)["data"]
    assert len(paper) > 10_000
    after = shown.page.value("document.querySelector('[data-lanes]').clientWidth")
    assert Shown.of(shown.page).range == before and after == size["canvas"]
    assert shown.page.complaints() == []


def test_ranks_without_spans_are_drawn_as_such(page: Browser, tmp_path: Path) -> None:
    """One part a lane, no messages and no steps."""
    run = run_of([trace_of([], rank) for rank in range(2)], 2, (0, 1000))
    write_page(tmp_path / "page.html", run, picture(run))
    page.open(tmp_path / "page.html", width=DESKTOP)
    assert 2 <= Shown.of(page).data["boxes"] <= 6 and page.complaints() == []
