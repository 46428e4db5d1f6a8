"""Site profiles: what they say, what is wrong with them, and that a study file wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.errors import StudyFileError
from paceline.identity import config_folder
from paceline.studies.load.load import load_study
from paceline.studies.load.sites import site_file, site_names, site_tables, with_site

STUDY = """
[study]
name = "mine"
[data]
dataset = "digits"
[model]
name = "mlp"
[train]
batch_global = 32
epochs = 1
{further}
"""


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "paceline" / "sites"


def write(config: Path, name: str, text: str) -> None:
    config.mkdir(parents=True, exist_ok=True)
    (config / f"{name}.toml").write_text(text)


def test_profiles_lie_in_the_users_configuration(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert site_names() == ()
    write(config, "alps", "")
    write(config, "laptop", "")
    assert site_names() == ("alps", "laptop")
    assert site_file("alps") == config / "alps.toml"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert config_folder() == Path.home() / ".config" / "paceline"


def test_a_profile_says_how_ranks_start(config: Path) -> None:
    write(
        config,
        "alps",
        '[run]\nlauncher = "slurm"\nranks_per_host = 4\n'
        '[launch]\npartition = "short"\nmodules = ["gcc/13", "cuda"]\ngrace_s = 30\nspread = false\n',
    )
    assert site_tables("alps") == {
        "run": {"launcher": "slurm", "ranks_per_host": 4},
        "launch": {"partition": "short", "modules": ["gcc/13", "cuda"], "grace_s": 30, "spread": False},
    }
    write(config, "empty", "")
    assert site_tables("empty") == {"run": {}, "launch": {}}


def test_all_mistakes_are_told_at_once_with_the_nearest_names(config: Path) -> None:
    write(
        config,
        "wrong",
        'partition = "short"\nrun = 3\n'
        '[launch]\npartiton = "x"\nagent = "ssh"\ngrace_s = -1\nstart = "bash"\nranks_per_host = 2\nsite = "alps"\n'
        "spread = 1\ngpus_per_host = true\nmodules = [1]\nunheard_of = 1\n[lunch]\na = 1\n",
    )
    with pytest.raises(StudyFileError) as caught:
        site_tables("wrong")
    text = str(caught.value)
    for said in (
        "wrong.toml has 13 mistakes:",
        'partition = "short": stands outside of every section. Did you mean launch.partition?',
        "run = 3: must be a section, [run] on a line of its own.",
        "launch.partiton: there is no such key. Did you mean launch.partition?",
        'launch.agent = "ssh": must be a list of texts',
        "launch.grace_s = -1: must be a finite number, 0 or more.",
        'launch.start = "bash": must be "srun" or "mpiexec".',
        "launch.ranks_per_host: there is no such key here. Did you mean run.ranks_per_host?",
        "launch.site: a study file says that, not a site profile.",
        "launch.spread = 1: must be true or false.",
        "launch.gpus_per_host = true: must be a whole number.",
        "launch.modules = [1]: must be a list of texts",
        "launch.unheard_of: there is no such key. [launch] takes machines, agent,",
        "[lunch]: there is no such section. Did you mean [launch]?",
        "paceline doctor --site wrong",
    ):
        assert said in text


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ('launcher = "slrum"', 'there is no such launcher. Did you mean "slurm"?'),
        ("ranks_per_host = 0", "must be from 1 to 4096."),
        (
            "threads = 2",
            "run.threads: a study file says that, not a site profile. [run] takes launcher, ranks_per_host.",
        ),
    ],
)
def test_of_a_run_a_profile_says_the_launcher_and_the_ranks_per_host(config: Path, run: str, said: str) -> None:
    write(config, "wrong", f"[run]\n{run}\n")
    with pytest.raises(StudyFileError) as caught:
        site_tables("wrong")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [(b"[launch", "is not TOML: "), (b"\xff", "is not UTF-8 text"), (b"a = " + b"[" * 5000, "is not TOML")],
)
def test_a_file_that_is_no_profile_is_refused(config: Path, text: bytes, said: str) -> None:
    config.mkdir(parents=True)
    (config / "odd.toml").write_bytes(text)
    with pytest.raises(StudyFileError, match=said):
        site_tables("odd")


def test_a_site_that_is_not_there_is_refused_with_those_that_are(config: Path) -> None:
    with pytest.raises(StudyFileError, match=r"There is none yet: a file in .* makes one"):
        site_tables("alps")
    write(config, "alps", "")
    with pytest.raises(StudyFileError, match=r"no site called 'alsp'. Did you mean 'alps'\?(.|\n)*Known sites: alps."):
        site_tables("alsp")


@pytest.mark.parametrize("name", ["", "../alps", "a/b", "a b", ".hidden", "x" * 200, "a\0b", "a\n"])
def test_a_name_never_leaves_the_folder_of_profiles(name: str) -> None:
    with pytest.raises(StudyFileError, match="cannot be the name of a site"):
        site_tables(name)


def test_a_study_file_wins_over_its_site(config: Path) -> None:
    write(
        config, "alps", '[run]\nlauncher = "slurm"\nranks_per_host = 4\n[launch]\npartition = "short"\naccount = "a"\n'
    )
    filled = with_site({"run": {"hosts": 2}, "launch": {"account": "b"}}, "alps")
    assert filled == {
        "run": {"launcher": "slurm", "ranks_per_host": 4, "hosts": 2},
        "launch": {"partition": "short", "account": "b"},
    }
    # A study that says how many ranks there are has no use for the site's ranks per host.
    assert with_site({"run": {"ranks": [1, 2]}}, "alps")["run"] == {"launcher": "slurm", "ranks": [1, 2]}


def test_a_study_is_loaded_with_its_site(config: Path, tmp_path: Path) -> None:
    write(config, "alps", '[run]\nlauncher = "mpi"\nranks_per_host = 2\n[launch]\ninterface = "lo"\n')
    file = tmp_path / "study.toml"
    file.write_text(STUDY.format(further='[run]\nranks = [1, 2]\n[launch]\nsite = "alps"\n'))
    study = load_study(file).study
    assert (study.run.launcher, study.launch.interface, study.launch.site) == ("mpi", "lo", "alps")
    assert load_study(file, ["run.launcher=local"]).study.run.launcher == "local"
