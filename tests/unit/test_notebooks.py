"""A real notebook, run by a real kernel, on a finished study."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from samples.finished_study import finished_study

CELLS = (
    "import paceline",
    "results = paceline.open_results('study')\nresults",
    "results.plot('ledger')",
    "results.table()",
    "print(results.table())",
    "paceline.study('instant.toml', out='study')",
    "results.plot('nothing')",
    "paceline.trace('study')",
    "paceline.watch('study')",
)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    """What each cell shows."""
    folder = tmp_path_factory.mktemp("notebook")
    finished_study(folder / "study", folder / "cache")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries around the kernel
        import nbformat
        from nbclient import NotebookClient

        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
        client = NotebookClient(
            notebook,
            timeout=120,
            allow_errors=True,
            resources={"metadata": {"path": str(folder)}},
            kernel_name="python3",
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PACELINE_CACHE", str(folder / "cache"))
            patch.setenv("IPYTHONDIR", str(folder / "ipython"))
            client.execute()
    return [cell.outputs for cell in notebook.cells]


def html(outputs: list[dict[str, Any]]) -> str:
    (output,) = outputs
    assert output["output_type"] == "execute_result", output
    return output["data"]["text/html"]


def test_results_show_verdict_table_and_plot(outputs: list[list[dict[str, Any]]]) -> None:
    shown = html(outputs[1])
    assert "2 ranks train 2.00 times as fast as 1" in shown and "Instant scaling" in shown
    assert "<table" in shown and "<svg" in shown and "<script" not in shown
    assert len(shown) < 40_000
    assert outputs[1][0]["data"]["text/plain"] == "<Results of 'instant': 6 of 6 runs in study>"


def test_plots_and_tables_show_themselves(outputs: list[list[dict[str, Any]]]) -> None:
    assert "Where the time went" in html(outputs[2]) and "<svg" in html(outputs[2])
    assert "<table" in html(outputs[3]) and "<svg" not in html(outputs[3])
    (printed,) = outputs[4]
    assert printed["output_type"] == "stream" and "speed-up" in printed["text"] and "<" not in printed["text"]


def test_a_finished_study_comes_back_with_the_same_output(outputs: list[list[dict[str, Any]]]) -> None:
    assert html(outputs[5]) == html(outputs[1])


def test_a_plot_that_is_not_there_is_an_error_in_words(outputs: list[list[dict[str, Any]]]) -> None:
    (failed,) = outputs[6]
    assert failed["ename"] == "RequestError" and "no plot 'nothing'" in failed["evalue"]


def test_the_folder_that_was_written_is_the_one_that_was_read(outputs: list[list[dict[str, Any]]]) -> None:
    assert str(Path("study") / "report.html") in html(outputs[1])


def test_other_results_show_their_text(outputs: list[list[dict[str, Any]]]) -> None:
    for shown, part in ((outputs[7], "2 ranks, "), (outputs[8], "All 6 runs are finished.")):
        assert "<pre" in html(shown) and part in html(shown)
    assert outputs[8][0]["data"]["text/plain"] == "<LiveView: study>"
