"""Inside a run: the timeline's data, the matrix, the tree and the tables of the page."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace

import numpy as np
import pytest
from test_html import Page

from paceline.analyze.run.message_matrix import host_matrix
from paceline.analyze.views.picture import picture
from paceline.records.counters import CpuTime, CpuTimes
from paceline.records.results import StudyResults
from paceline.records.run_picture import PICTURE_KINDS, Picture
from paceline.records.trace_summary import Efficiencies, Exchange
from paceline.reporting.figures.legend import KIND_STYLES
from paceline.reporting.html import report_page
from paceline.reporting.html.markup import fragment
from paceline.reporting.html.matrix_html import matrices
from paceline.reporting.html.timeline_html import timeline, timeline_object
from paceline.reporting.html.tree import efficiency_tree
from paceline.reporting.model import ReportModel, report_model
from samples import report_samples as samples
from samples.picture_samples import busy_run, looked_into

MOST_BYTES = 10_000_000


def model_of(results: StudyResults, drawn: Picture) -> ReportModel:
    return report_model(results, {results.points[-1].point_id: drawn})


@pytest.fixture(scope="module")
def model() -> ReportModel:
    run = busy_run(2, 40, hosts=("node-a", "node-b"), clock_error_ns=12_000)
    return model_of(looked_into(run), picture(run))


@pytest.fixture(scope="module")
def page(model: ReportModel) -> Page:
    return Page(report_page.render(model))


def test_the_script_is_told_the_columns_as_they_are() -> None:
    drawn = picture(busy_run(2, 10))
    shown = timeline("2 ranks", drawn)
    assert shown is not None
    told = json.loads(json.dumps(timeline_object(shown)))
    types = {"kind": "u1", "step": "<i4", "ref": "<i4", "steps": "<i4"}
    packed, at = zlib.decompress(base64.b64decode(told["packed"])), 0
    for name, count in told["counts"].items():
        changes = np.frombuffer(packed, types.get(name, "<u4"), count, at)
        at += changes.nbytes
        found = np.cumsum(changes, dtype=changes.dtype)
        assert np.array_equal(found, getattr(drawn, name)), name
    assert at == len(packed) and told["counts"]["start"] == len(drawn.start) > 0
    assert told["window"] == drawn.window and told["tick"] == drawn.tick_ns
    assert told["labels"] == ["allreduce_, 2.8 MB of float32, group 0"]
    assert [kind["name"] for kind in told["kinds"]] == list(PICTURE_KINDS)
    assert told["lanes"] == [[lane.rank, lane.row, lane.first, lane.count] for lane in drawn.lanes]


def test_the_keys_are_the_kinds_that_are_there() -> None:
    shown = timeline("2 ranks", picture(busy_run(2, 10)))
    assert shown is not None
    labels = [key.label for key in shown.keys]
    assert labels == [
        "startup",
        "input-wait",
        "forward",
        "backward",
        "comm-wait",
        "comm-transfer",
        "optimizer",
        "other",
    ]
    assert len({color for color, _ in KIND_STYLES.values()}) == len(KIND_STYLES)


def test_the_caption_says_what_is_left_out() -> None:
    run = busy_run(2, 2000)
    whole = timeline("a", picture(run))
    few = timeline("a", picture(replace(run, clock_error_ns=12_000), 4000))
    assert whole is not None and few is not None
    assert "merged" not in whole.caption and "misplaced" not in whole.caption
    drawn = few.picture
    assert f"{drawn.shown:,} of {drawn.parts:,} parts are shown one by one; those shorter than " in few.caption
    assert "20 stretches are in full" in few.caption and "by up to 12.0 µs" in few.caption
    many = timeline("a", replace(picture(run), ranks=128))
    assert many is not None and "2 of 128 ranks." in many.caption
    assert timeline("a", replace(picture(run), lanes=())) is None


def test_the_page_has_one_more_script_and_it_is_named_in_the_policy(page: Page) -> None:
    executed = [script for kind, script in page.scripts if kind is None]
    assert len(executed) == 3
    assert len(re.findall("'sha256-", page.policy)) == 3
    told = [script for kind, script in page.scripts if kind == "application/json"]
    assert len(told) == 2 and len(json.loads(told[1])) == 1


def test_the_section_is_within_reach_and_complete(page: Page) -> None:
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert {"inside", "efficiency"} <= ids
    canvases = [attributes for tag, attributes in page.elements if tag == "canvas"]
    assert (
        len(canvases) == 2
        and canvases[0]["tabindex"] == "0"
        and "Timeline of 2 ranks" in (canvases[0]["aria-label"] or "")
    )
    for text in ("Messages by operation and size", "Stragglers", "The critical path", "Payload between ranks"):
        assert text in page.text
    # Nothing to choose from where one run alone can be looked into.
    assert "select" not in {tag for tag, _ in page.elements}


def test_the_widest_run_comes_first_and_others_can_be_chosen() -> None:
    run = busy_run(2, 5)
    results = looked_into(run)
    model = report_model(results, {point.point_id: picture(run) for point in results.points})
    assert [each.title for each in model.inside] == ["2 ranks, run 3", "1 rank, run 3"]
    page = Page(report_page.render(model))
    assert page.text.count("2 ranks, run 3") >= 2 and "select" in {tag for tag, _ in page.elements}
    assert [a["data-timeline"] for _, a in page.elements if "data-timeline" in a] == ["0", "1"]


def test_a_study_without_traces_has_neither_section_nor_script() -> None:
    text = report_page.render(report_model(samples.typical()))
    assert 'id="inside"' not in text and 'id="efficiency"' not in text and "class Timeline" not in text


def test_real_user_and_sys_are_explained_where_they_were_measured() -> None:
    run = busy_run(2, 5)
    results = looked_into(run)
    nothing = {name: None for name in CpuTime.__dataclass_fields__}
    whole = CpuTime(**{**nothing, "real_s": 2.0})
    times = CpuTimes(whole=whole, processes=(), energy=(), sentence="Real 2.00 s, user & sys.")
    point = results.points[-1].point_id
    shown = report_page.render(report_model(results, {}, {point: times}))
    assert '<p class="told">Real 2.00 s, user &amp; sys.</p>' in shown


def exchanges(*cells: tuple[int, int, int]) -> tuple[Exchange, ...]:
    return tuple(
        Exchange(source=a, target=b, payload_bytes=size, seconds=size / 1e6, messages=3, estimated=a == 0)
        for a, b, size in cells
    )


def test_the_matrix_shades_what_went_from_whom_to_whom(model: ReportModel) -> None:
    found = looked_into(busy_run(2, 5)).points[-1].anatomy
    assert found is not None
    run = replace(found, ranks=2, matrix=exchanges((0, 1, 4_000_000), (1, 0, 1_000_000)))
    payload, moved = matrices(run, ())
    (none, first), (second, _) = payload.rows
    assert none is None and first is not None and second is not None
    assert (first.text, first.level, second.text, second.level) == ("≈ 4.0 MB", 1.0, "1.0 MB", 0.25)
    assert first.about == "rank 0 to rank 1: ≈ 4.0 MB, 3 messages"
    assert "Estimated (≈)" in payload.caption and payload.places == ()
    assert moved.rows[1][0] is not None and moved.rows[1][0].text == "1.00 s"
    drawn = fragment("inside", "matrix", payload)
    assert drawn.count('class="shade') == 2 and 'style="--level:0.250"' in drawn
    assert matrices(replace(run, matrix=()), ()) == ()


def test_ranks_of_a_host_stand_side_by_side_and_servers_last() -> None:
    found = looked_into(busy_run(2, 5)).points[-1].anatomy
    assert found is not None
    run = replace(found, ranks=4, matrix=exchanges((0, 4, 10), (3, 1, 20)))
    payload, _ = matrices(run, ("b", "a", "b", "a"))
    assert payload.names == ("rank 0", "rank 2", "rank 1", "rank 3", "server 4")
    assert payload.places == ("b", "b", "a", "a", "servers")
    assert '<th scope="colgroup" colspan="2">b</th>' in fragment("inside", "matrix", payload)
    many = replace(found, ranks=100, matrix=exchanges((0, 1, 10)))
    wide, _ = matrices(many, ())
    assert len(wide.names) == 64 and "first 64 of 100" in wide.caption and not wide.figures
    assert "10.0 B" not in re.sub("title=.*?>", ">", fragment("inside", "matrix", wide))


def test_what_went_between_hosts_has_a_matrix_of_its_own() -> None:
    found = looked_into(busy_run(2, 5)).points[-1].anatomy
    assert found is not None
    hosts, ring = ("b", "b", "a", "a"), exchanges((0, 1, 10), (1, 2, 10), (2, 3, 10), (3, 0, 10))
    names, cells = host_matrix(ring, hosts)
    run = replace(found, ranks=4, matrix=ring, host_names=names, host_matrix=cells)
    _, _, payload, moved = matrices(run, hosts)
    assert (payload.title, payload.names, moved.title) == ("Payload between hosts", ("b", "a"), "Time between hosts")
    texts = [shade.text.removeprefix("≈ ") for row in payload.rows for shade in row if shade]
    assert texts == ["10.0 B"] * 4
    assert payload.rows[0][1] is not None and payload.rows[0][1].about.startswith("b to a: ")
    one, _ = matrices(replace(run, host_names=("b",)), ("b",) * 4)
    assert one.title == "Payload between ranks"


def test_the_tree_shows_every_factor_and_what_is_left() -> None:
    results = looked_into(busy_run(2, 5))
    lost = {results.points[-1].point_id: {"load_balance": 0.29, "computation_scaling": -0.19}}
    tree = efficiency_tree(results, lost)
    values = {factor.name: factor.values for factor in tree.factors}
    assert tree.labels == ("1 rank", "2 ranks")
    assert values["load balance"] == (0.97, 0.97) and values["global"] == (0.9, 0.9)
    efficiency = results.points[-1].efficiency
    assert efficiency is not None and values["measured"][1] == efficiency.median
    assert tree.left[1] == pytest.approx(efficiency.median - 0.9) and tree.left[1] == pytest.approx(0.04)
    drawn = fragment("inside", "tree", tree)
    assert drawn.count('class="bar') == 2 * 6 and "97\u00a0%" in drawn
    assert drawn.count("of the loss") == 2 and "29\u00a0% of the loss" in drawn and "+4 points" in drawn
    assert fragment("inside", "tree", efficiency_tree(samples.typical(), {})) == ""


def test_a_factor_that_is_not_known_is_a_dash() -> None:
    results = looked_into(busy_run(2, 5))
    tree = Efficiencies(global_=0.0, computation_scaling=None, load_balance=1.2, serialisation=0.5, transfer=1.0)
    points = (replace(results.points[-1], efficiencies=tree),)
    found = efficiency_tree(replace(results, points=points), {})
    values = {factor.name: factor.values for factor in found.factors}
    assert values["computation scaling"] == (None,)
    drawn = fragment("inside", "tree", found)
    assert "<td>–</td>" in drawn and 'style="--part:1.000"' in drawn and 'class="bar low"' in drawn


@pytest.mark.parametrize("text", samples.HOSTILE)
def test_hostile_names_of_messages_and_hosts_are_text_and_nothing_else(text: str) -> None:
    run = busy_run(2, 5, hosts=("a", "b"))

    def rendered(name: str) -> Page:
        results = looked_into(run)
        last = results.points[-1]
        found = last.anatomy
        assert found is not None
        kinds = tuple(replace(kind, operation=name, group=name, dtype=name) for kind in found.messages)
        hostile = replace(found, messages=kinds, problems=(name,))
        drawn = picture(run)
        labels = tuple(replace(label, operation=name, group=name, dtype=name) for label in drawn.labels)
        drawn = replace(drawn, name=name, hosts=(name, name + "2"), labels=labels)
        points = (*results.points[:-1], replace(last, anatomy=hostile))
        return Page(report_page.render(model_of(replace(results, points=points), drawn)))

    clean, shown = rendered("plain"), rendered(text)
    assert [tag for tag, _ in shown.elements] == [tag for tag, _ in clean.elements]
    assert [sorted(a) for _, a in shown.elements] == [sorted(a) for _, a in clean.elements]
    assert [s for kind, s in shown.scripts if kind is None] == [s for kind, s in clean.scripts if kind is None]


def test_a_page_with_a_million_spans_is_small() -> None:
    run = busy_run(4, 40_000)
    drawn = picture(run)
    assert drawn.parts > 1_000_000
    results = looked_into(busy_run(4, 5))
    assert len(report_page.render(model_of(results, drawn)).encode()) < MOST_BYTES
