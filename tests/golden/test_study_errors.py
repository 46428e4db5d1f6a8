"""What is said about wrong study files, whole: study_errors/NAME.toml and the NAME.txt that it gets.

After a change of words: UPDATE_GOLDEN=1 pytest tests/golden/test_study_errors.py, and read the difference.
"""

import os
import shutil
from pathlib import Path

import pytest

from paceline.errors import StudyFileError
from paceline.studies.load.load import load_study

CASES = Path(__file__).with_name("study_errors")
OVERRIDES = {"overrides": ["train.lrr=1", "lr=2", "run.ranks=0", "run", "train.lr=fast", "model.name=mpl"]}


def said(path: Path, overrides: list[str]) -> str:
    with pytest.raises(StudyFileError) as caught:
        load_study(path, overrides)
    assert caught.value.exit_code == 2
    return str(caught.value).replace(str(path.parent), "FOLDER") + "\n"


@pytest.mark.parametrize("name", [*sorted(path.stem for path in CASES.glob("*.toml")), *OVERRIDES])
def test_study_errors(name: str, tmp_path: Path) -> None:
    expected = CASES / f"{name}.txt"
    source = CASES / f"{name}.toml" if name not in OVERRIDES else load_study("digits").source
    path = Path(shutil.copy(source, tmp_path))
    text = said(path, OVERRIDES.get(name, []))
    if os.environ.get("UPDATE_GOLDEN"):
        expected.write_text(text)
    assert text == expected.read_text()
