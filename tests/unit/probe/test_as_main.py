from __future__ import annotations

import sys
from pathlib import Path

import pytest

from paceline.errors import RequestError
from paceline.probe.as_main import prepared_script, run_as_main


@pytest.fixture(autouse=True)
def own_interpreter(monkeypatch):
    """What a script finds is set for good in its process, not in this one."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


def ended(folder: Path, text: str, *arguments: str):
    script = folder / "job.py"
    script.write_text(text)
    return run_as_main(*prepared_script(script, arguments))


def test_a_script_finds_what_it_would_find_alone(tmp_path, capsys):
    (tmp_path / "beside.py").write_text("word = 'found'\n")
    text = "import sys, pickle, beside\ndef f(): pass\n"
    text += "print(__name__, __file__, sys.argv, beside.word, pickle.loads(pickle.dumps(f)) is f, __spec__)\n"
    assert ended(tmp_path, text, "--lr", "0.1").exit_code == 0
    path = str(tmp_path / "job.py")
    assert capsys.readouterr().out == f"__main__ {path} {[path, '--lr', '0.1']} found True None\n"
    assert sys.path[0] == str(tmp_path)
    del sys.modules["beside"]


def test_a_module_by_its_name(tmp_path, monkeypatch, capsys):
    package = tmp_path / "lab_of_tests"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "job.py").write_text("import sys\nfrom . import other\nprint(__package__, sys.argv[1:], other.x)\n")
    (package / "other.py").write_text("x = 5\n")
    (package / "__main__.py").write_text("print('whole package', __spec__.name)\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert run_as_main(*prepared_script("lab_of_tests.job", ["a"])).exit_code == 0
    assert run_as_main(*prepared_script("lab_of_tests", [])).exit_code == 0
    told = capsys.readouterr().out.splitlines()
    assert told == ["lab_of_tests ['a'] 5", "whole package lab_of_tests.__main__"]
    for name in [each for each in sys.modules if each.startswith("lab_of_tests")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("call", "code", "error"),
    [
        ("sys.exit()", 0, None),
        ("sys.exit(0)", 0, None),
        ("sys.exit(3)", 3, None),
        ("sys.exit(-1)", 255, None),
        ("sys.exit(True)", 1, None),
        ("sys.exit('No data.')", 1, "No data."),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt"),
        ("{}['x']", 1, "KeyError: 'x'"),
        ("raise GeneratorExit", 1, "GeneratorExit: "),
    ],
)
def test_endings(tmp_path, call, code, error):
    ending = ended(tmp_path, f"import sys\n{call}\n")
    assert (ending.exit_code, ending.error) == (code, error)


def test_a_traceback_is_the_scripts_own(tmp_path, capsys):
    text = "def f():\n    try:\n        {}['x']\n    except KeyError as error:\n"
    text += "        raise ValueError('bad') from error\nf()\n"
    ending = ended(tmp_path, text)
    told = capsys.readouterr().err
    assert told == ending.traceback
    assert told.count("Traceback (most recent call last)") == 2 and told.count("ValueError: bad") == 1
    assert "as_main.py" not in told and f'File "{tmp_path / "job.py"}", line 6, in <module>' in told


def test_the_scripts_own_hook_shows_its_errors(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    ended(tmp_path, "import sys\nsys.excepthook = lambda kind, error, trace: print('seen', error)\n1 / 0\n")
    assert capsys.readouterr().out == "seen division by zero\n"


def test_what_cannot_be_run_is_refused(tmp_path):
    with pytest.raises(RequestError, match="cannot be read: No such file"):
        prepared_script(tmp_path / "missing.py", [])
    with pytest.raises(RequestError, match="cannot be read: Is a directory"):
        prepared_script(tmp_path, [])
    with pytest.raises(RequestError, match=r"is not valid Python: .*line 1"):
        ended(tmp_path, "def\n")
    with pytest.raises(RequestError, match=r"no module 'not\.there'"):
        prepared_script("not.there", [])
