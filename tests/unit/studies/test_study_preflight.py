import sys
from pathlib import Path

import pytest
from study_help import loaded

from paceline.errors import ModelError
from paceline.launch.launcher import Placement
from paceline.studies.execute.compose import new_manifest
from paceline.studies.execute.preflight import Built, check_model
from paceline.studies.expand.expand import expand, schedule


@pytest.fixture
def check(tmp_path: Path):
    """Runs a few lines of Python in place of the preflight."""
    study = loaded(tmp_path).study
    (run, *_) = schedule(expand(study, data_digest="", model_digest=""), 1)
    placement = Placement(cores=None, text="", oversubscribed=False)
    manifest = new_manifest(
        run, study=study, data_folder=tmp_path, model_file=tmp_path / "net.py", placement=placement, attempt=1
    )

    def preflight(code: str, timeout_s: float = 60.0, **options) -> tuple[Built, ...]:
        return check_model([manifest], command=(sys.executable, "-c", code), timeout_s=timeout_s, **options)

    return preflight


def test_a_model_that_fits_passes_and_is_told_all(check) -> None:
    check(
        "import sys, os; from pathlib import Path; from paceline.storage.codec import read_record\n"
        "from paceline.records.run import Manifest\n"
        "manifest = read_record(Path(sys.argv[1]), Manifest)\n"
        "assert manifest.study == 'tiny' and os.environ['OMP_NUM_THREADS'] == '1'\n"
        "assert os.environ['PACELINE_PARENT_PID'] == str(os.getppid()) and sys.stdin.read() == ''\n"
        """print('{"ok": true, "models": [{"parameters": 3}]}')"""
    )


def test_the_time_of_a_sample_is_asked_for_and_passed_on(check) -> None:
    answer = (
        "import json, sys; timed = {'sample_s': 0.25} if '--timed' in sys.argv else {}\n"
        "print(json.dumps({'ok': True, 'models': [{'parameters': 3, **timed}]}))"
    )
    assert check(answer, timed=True) == (Built(parameters=3, sample_s=0.25),)
    assert check(answer) == (Built(parameters=3),)


def test_its_sentence_is_passed_on(check) -> None:
    with pytest.raises(ModelError) as caught:
        check("""print('{"ok": false, "error": "No such model.", "right": "A", "next": "B"}')""")
    assert (caught.value.what, caught.value.right, caught.value.next) == ("No such model.", "A", "B")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; print('last words', file=sys.stderr); sys.exit(3)", "ended with exit code 3.\n  last words"),
        ("import os; os.kill(os.getpid(), 9)", "ended with signal 9."),
        ("print('nonsense')", "ended with exit code 0."),
        ("print('[1]')", "ended with exit code 0."),
    ],
)
def test_a_check_that_ends_without_an_answer(check, code: str, said: str) -> None:
    with pytest.raises(ModelError) as caught:
        check(code)
    assert said in caught.value.what and "net.py" in caught.value.next


def test_a_model_that_never_ends(check) -> None:
    with pytest.raises(ModelError, match="was not built within"):
        check("import time; time.sleep(100)", timeout_s=0.3)
