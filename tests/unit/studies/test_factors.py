"""Lists in a study file: what may be varied, what it expands to, and what is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from paceline.errors import StudyFileError
from paceline.records.study import Point, Study, point_label
from paceline.studies.expand.expand import expand, launch_of, schedule
from paceline.studies.load.keys import FACTORS, FIXED
from paceline.studies.load.load import load_study

FILE = """
[study]
name = "s"
[train]
batch_global = 64
epochs = 1
"""


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Study]:
    def load(lines: str = "", *overrides: str) -> Study:
        path = tmp_path / "s.toml"
        path.write_text(FILE + lines)
        return load_study(path, overrides).study

    return load


@pytest.fixture
def mistakes(load) -> Callable[..., list[str]]:
    def mistakes(lines: str = "", *overrides: str) -> list[str]:
        with pytest.raises(StudyFileError) as caught:
            load(lines, *overrides)
        return [line.strip() for line in caught.value.what.splitlines()[1:]]

    return mistakes


def points(study: Study) -> tuple[Point, ...]:
    return expand(study, data_digest="d", model_digest="m")


def labels(study: Study) -> list[str]:
    return [point_label(point, study.vary) for point in points(study)]


def test_a_study_without_factors_looks_as_before(load) -> None:
    study = load("[run]\nstrategy = ['flat']\nranks = [1, 2]\n")
    assert study.vary == {} and study.run.strategy == "flat"
    assert labels(study) == ["1 rank", "2 ranks"]


def test_the_points_are_all_combinations_in_the_order_of_the_file_ranks_innermost(load) -> None:
    study = load("[run]\nthreads = [2, 1]\nranks = [3, 2]\nstrategy = ['flat', 'ddp']\n")
    assert study.vary == {"run.threads": (2, 1), "run.strategy": ("flat", "ddp")}
    assert (study.run.threads, study.run.strategy) == (2, "flat")
    assert [(point.threads, point.strategy, point.ranks) for point in points(study)] == [
        (threads, strategy, ranks) for threads in (2, 1) for strategy in ("flat", "ddp") for ranks in (3, 2)
    ]
    assert len({point.point_id for point in points(study)}) == 8
    runs = schedule(points(study), 2)
    assert [run.point for run in runs[:8]] == [run.point for run in reversed(runs[8:])]


def test_any_section_may_vary_and_the_values_reach_the_points(load) -> None:
    study = load("lr = [0.1, 1]\n[run]\nranks = 2\n[data]\ntrain_samples = [100, 200]\nread = ['mapped', 'whole']\n")
    found = {(p.train.lr, p.data.train_samples, p.data.read) for p in points(study)}
    assert found == {(lr, n, read) for lr in (0.1, 1.0) for n in (100, 200) for read in ("mapped", "whole")}
    assert labels(study)[-1] == "2 ranks, lr 1.0, 200 samples, read whole"


def test_one_rank_exchanges_nothing_and_is_run_once_under_the_first_strategy(load) -> None:
    study = load("[run]\nranks = [1, 2]\nstrategy = ['flat', 'parameter-server', 'ddp', 'local-sgd']\n")
    assert labels(study) == [
        "1 rank, flat",
        "2 ranks, flat",
        "1 rank, parameter-server",
        "2 ranks, parameter-server",
        "2 ranks, ddp",
        "2 ranks, local-sgd",
    ]
    twice = load("[run]\nranks = [1]\nstrategy = ['flat', 'ddp']\nthreads = [1, 2]\n")
    assert labels(twice) == ["1 rank, flat, 1 thread", "1 rank, flat, 2 threads"]


def test_options_belong_to_the_strategy_that_takes_them(load) -> None:
    study = load("[run]\nranks = 2\nstrategy = ['parameter-server', 'ddp']\nservers = [1, 2]\n")
    assert labels(study) == [
        "2 ranks, parameter-server, 1 server",
        "2 ranks, parameter-server, 2 servers",
        "2 ranks, ddp",
    ]
    assert [point.options for point in points(study)] == [
        {"servers": 1, "server_threads": 1},
        {"servers": 2, "server_threads": 1},
        {},
    ]
    assert [point.processes for point in points(study)] == [4, 5, 2]


def test_ranks_may_be_given_per_host(load) -> None:
    study = load("[run]\nhosts = [1, 2]\nranks_per_host = [1, 3]\nlauncher = 'slurm'\n[launch]\ninterface = 'eth0'\n")
    assert study.run.ranks == ()
    assert labels(study) == ["1 rank on 1 host", "3 ranks on 1 host", "2 ranks on 2 hosts", "6 ranks on 2 hosts"]
    assert [point.site for point in points(study)] == [{}, {}, {"interface": "eth0"}, {"interface": "eth0"}]
    assert load("[run]\nranks_per_host = 4\n", "run.ranks=1,2").run.ranks == (1, 2), "an override means one of them"
    assert load("[run]\nranks = [1, 2]\n", "run.ranks_per_host=4").run.ranks == ()


def test_what_decides_how_fast_a_launcher_is_makes_another_point(load) -> None:
    lines = "[launch]\npartition = 'short'\ngpus_per_host = 2\nspread = false\nmpiexec = 'hydra'\ninterface = 'ib0'\n"
    sites = {
        launcher: points(load(f"[run]\nlauncher = '{launcher}'\nranks = 2\n{lines}"))[0].site
        for launcher in ("local", "torchrun", "mpi", "slurm", "pbs", "ray")
    }
    assert sites == {
        "local": {},
        "torchrun": {},
        "mpi": {"mpiexec": "hydra"},
        "slurm": {"partition": "short", "gpus_per_host": "2"},
        "pbs": {"partition": "short", "gpus_per_host": "2"},
        "ray": {"gpus_per_host": "2", "spread": "False"},
    }


@pytest.mark.parametrize(
    ("override", "path", "values"),
    [
        ("run.strategy=ddp,flat", "run.strategy", ("ddp", "flat")),
        ('run.strategy=["ddp","flat"]', "run.strategy", ("ddp", "flat")),
        ('run.strategy="ddp","flat"', "run.strategy", ("ddp", "flat")),
        ("run.strategy=ddp, flat", "run.strategy", ("ddp", "flat")),
        ("train.batch_global=64,128", "train.batch_global", (64, 128)),
        ("train.lr=0.1,1", "train.lr", (0.1, 1.0)),
        ("run.pin=true,false", "run.pin", (True, False)),
        ("data.read=mapped,whole", "data.read", ("mapped", "whole")),
        ("train.batch_per_rank=[8, 16]", "train.batch_per_rank", (8, 16)),
    ],
)
def test_factors_may_be_given_on_the_command_line(load, override: str, path: str, values: tuple) -> None:
    study = load("", override)
    assert study.vary == {path: values} and [type(item) for item in study.vary[path]] == [type(v) for v in values]


def test_an_override_takes_a_factor_away(load) -> None:
    lines = "[run]\nstrategy = ['ddp', 'flat']\n"
    assert load(lines, "run.strategy=flat").vary == {}
    assert load(lines).vary == {"run.strategy": ("ddp", "flat")}


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("launch.machines=a,b", ("a", "b")),
        ("launch.machines=a", ("a",)),
        ('launch.agent=["ssh", "-q"]', ("ssh", "-q")),
        ("launch.agent=ssh", ("ssh",)),
        ("launch.directives=--exclude=a,b", ("--exclude=a,b",)),
        ('launch.directives=["--exclusive", "--exclude=a,b"]', ("--exclusive", "--exclude=a,b")),
        ("launch.modules=gcc/12,mpi", ("gcc/12", "mpi")),
        ("launch.modules=12", ("12",)),
    ],
)
def test_lists_of_text_on_the_command_line(load, override: str, value: tuple[str, ...]) -> None:
    assert getattr(load("", override).launch, override.partition("=")[0].split(".")[1]) == value


def test_text_with_a_comma_that_can_be_no_list_is_left_alone(load) -> None:
    assert load("", "study.title=ddp, flat").title == "ddp, flat"
    assert load("", "launch.constraint=[a|b],c").launch.constraint == "[a|b],c"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("[run]\nthreads = []\n", "run.threads = []: must name at least one value."),
        ("[run]\nthreads = [1, 1]\n", "run.threads = [1, 1]: each value may stand there once."),
        ("lr = [1, 1.0]\n", "train.lr = [1.0, 1.0]: each value may stand there once."),
        ("lr = [0.1, 'x']\n", 'train.lr = [0.1, "x"]: each must be a number.'),
        ("[run]\npin = [true, 1]\n", "run.pin = [true, 1]: each must be true or false."),
        ("[run]\nthreads = [[1], [2]]\n", "run.threads = [[1], [2]]: each must be a whole number."),
        ("[run]\nthreads = [1, 0]\n", "run.threads = 0: must be from 1 to 4096."),
        (
            "[run]\nstrategy = ['ddp', 'falt']\n",
            'run.strategy = "falt": there is no such strategy. Did you mean "flat"?',
        ),
        ("[run]\nrepeats = [3, 5]\n", "run.repeats = [3, 5]: cannot be varied, because it says how often"),
        ("[run]\nheartbeat_s = [3.0]\n", "run.heartbeat_s = [3.0]: cannot be varied, because it says how long"),
        ("[run]\nscaling = ['weak', 'strong']\n", "cannot be varied, because points of one study are compared"),
        ("seed = [1, 2]\n", "train.seed = [1, 2]: cannot be varied, because every repeat has a seed of its own"),
        ("[launch]\naccount = ['a', 'b']\n", 'launch.account = ["a", "b"]: must be text in quotes.'),
        ("[data]\nread = 'mmap'\n", 'data.read = "mmap": must be "mapped" or "whole" or "mpi-io".'),
        (f"[run]\nthreads = {list(range(1, 102))}\naverage_every = {list(range(1, 102))}\n", "make 20,402 points"),
        ("[run]\nservers = 2\n", "run.servers = 2: the strategy ddp does not take it; parameter-server and"),
        (
            "[run]\nstaleness = [1, 2]\nstrategy = ['ddp', 'flat']\n",
            "run.staleness = [1, 2]: none of ddp and flat does",
        ),
        ("[run]\nhosts = 3\nlauncher = 'slurm'\n[launch]\ninterface = 'e'\n", "run.hosts = 3: is more than 1 rank can"),
        ("[run]\nranks = [1, 2]\nranks_per_host = 2\n", "run.ranks and run.ranks_per_host are both given"),
        ("[launch]\nagent = [1]\n", "launch.agent = [1]: must be text in quotes, or a list of those."),
        (
            "[launch]\nmachines = ['a', '-oProxyCommand=x']\n",
            "must be names of hosts, without spaces, commas and a dash",
        ),
        ("[launch]\nmachines = ['a', 'a']\n", "each host may stand there once"),
        ("[launch]\nagent = []\n", "must name a command"),
        ('[launch]\naccount = "a\\nb"\n', "must not have line breaks or control characters in it"),
        ("[launch]\ndirectives = ['']\n", "must not have empty texts in it"),
        ("[launch]\nstart = 'mpirun'\n", 'must be "srun" or "mpiexec"'),
        ("[launch]\ngpus_per_host = -1\n", "launch.gpus_per_host = -1: must be 0 or more."),
        ("[launch]\ngrace_s = inf\n", "launch.grace_s = inf: must be a finite number, 0 or more."),
        ("[launch]\nmpiexec = ''\n", "must be a name on the path, or a path"),
        ("[launch]\npartiton = 'x'\n", "launch.partiton: there is no such key. Did you mean launch.partition?"),
    ],
)
def test_one_mistake_gets_one_sentence_whatever_varies(mistakes, lines: str, said: str) -> None:
    (found,) = mistakes(lines)
    assert said in found


def test_hosts_times_ranks_per_host_has_a_limit(mistakes) -> None:
    lines = "[run]\nhosts = 200\nranks_per_host = 200\nlauncher = 'slurm'\n[launch]\ninterface = 'e'\n"
    (found,) = mistakes(lines, "train.batch_global=40000")
    assert found == "run.hosts × run.ranks_per_host = 40000: at most 4096 ranks are taken."


def test_every_combination_is_checked_and_each_mistake_said_once(mistakes) -> None:
    lines = "[run]\nstrategy = ['ddp', 'flat']\nthreads = [1, 2]\nranks = [1, 100]\ndevice = 'gpu'\n"
    assert [line.split(":")[0] for line in mistakes(lines)] == ['run.device = "gpu"', "train.batch_global = 64"]
    assert len(mistakes("[run]\nranks = [2, 4]\n", "train.batch_global=1,3,8")) == 2


@pytest.mark.parametrize("path", FIXED)
def test_what_is_fixed_is_no_factor(path: str) -> None:
    assert path not in FACTORS


@pytest.mark.parametrize(
    ("strategy", "launcher", "said"),
    [
        ("mpi-allreduce", "local", "needs MPI, which the launcher local does not bring. mpi and slurm can"),
        ("mpi-reduce-broadcast", "torchrun", "needs MPI, which the launcher torchrun does not bring."),
        ("ddp,mpi-allreduce", "mpi,ray", "needs MPI, which the launcher ray does not bring."),
    ],
)
def test_a_strategy_that_a_launcher_cannot_carry_is_refused(mistakes, strategy: str, launcher: str, said: str) -> None:
    (found,) = mistakes("", f"run.strategy={strategy}", f"run.launcher={launcher}")
    assert found.startswith('run.strategy = "mpi-') and said in found


def test_reading_through_mpi_needs_mpi(mistakes, load) -> None:
    (found,) = mistakes("", "data.read=mapped,mpi-io")
    assert found.startswith('data.read = "mpi-io": needs MPI')
    assert load("", "data.read=mpi-io", "run.launcher=mpi").data.read == "mpi-io"


def test_several_hosts_need_a_launcher_an_interface_and_for_some_names(mistakes, load) -> None:
    two = "[run]\nranks = [4]\nhosts = [1, 2, 3]\n"
    (found,) = mistakes(two)
    assert found.startswith('run.launcher = "local": all its ranks are on this machine, but run.hosts asks for more.')
    assert "torchrun, mpi, slurm, pbs and ray can" in found
    for launcher in ("torchrun", "mpi"):
        interface, machines = mistakes(two, f"run.launcher={launcher}", "launch.machines=a,b")
        assert interface.startswith("launch.interface is missing")
        assert machines.startswith("launch.machines names 2 hosts, but run.hosts asks for 3")
        named = ("launch.interface=eth0", "launch.machines=a,b,c,d")
        assert load(two, f"run.launcher={launcher}", *named).vary == {"run.hosts": (1, 2, 3)}
    for launcher in ("slurm", "ray"):
        (found,) = mistakes(two, f"run.launcher={launcher}")
        assert found.startswith("launch.interface is missing")


def test_a_site_profile_fills_in_what_the_study_leaves_open(load, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    profile = tmp_path / "config" / "paceline" / "sites" / "here.toml"
    profile.parent.mkdir(parents=True)
    profile.write_text('[run]\nlauncher = "slurm"\nranks_per_host = 4\n[launch]\npartition = "short"\naccount = "us"\n')
    study = load("[launch]\nsite = 'here'\naccount = 'me'\n")
    assert (study.run.launcher, study.run.ranks, study.run.ranks_per_host) == ("slurm", (), 4)
    assert (study.launch.partition, study.launch.account, study.launch.site) == ("short", "me", "here")
    study = load("[run]\nranks = [1, 2]\n", "launch.site=here", "launch.partition=long")
    assert (study.run.ranks, study.run.ranks_per_host, study.launch.partition) == ((1, 2), None, "long")
    with pytest.raises(StudyFileError, match=r"no site called 'heer'.*'here'"):
        load("", "launch.site=heer")


def test_what_decides_how_fast_ranks_are_may_be_varied_and_reaches_the_launcher(load) -> None:
    lines = "[run]\nlauncher = 'slurm'\n[launch]\npartition = ['short', 'long']\ngpus_per_host = [0, 2]\n"
    study = load(lines)
    assert study.vary == {"launch.partition": ("short", "long"), "launch.gpus_per_host": (0, 2)}
    made = points(study)
    assert len({point.point_id for point in made}) == len(made) == 8
    told = {(launch_of(study, point).partition, launch_of(study, point).gpus_per_host) for point in made}
    assert told == {("short", 0), ("short", 2), ("long", 0), ("long", 2)}
    assert labels(study)[0] == "1 rank, partition short, gpus per host 0"


def test_a_factor_that_no_launcher_looks_at_is_refused(mistakes) -> None:
    said = 'launch.partition = ["a", "b"]: the launcher local is no faster or slower by it. Give one value.'
    assert mistakes("[launch]\npartition = ['a', 'b']\n") == [said]


def test_cores_are_a_setting_of_their_own_and_need_pinning(load, mistakes) -> None:
    assert [point.cores for point in points(load("[run]\nranks = 1\ncores = [1, 2]\n"))] == [1, 2]
    said = "run.cores = 2: a rank is kept to so many cores by pinning it, and run.pin is false."
    assert mistakes("[run]\ncores = 2\npin = false\n") == [said]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("", 'study.design = "one-at-a-time": nothing is varied. Give a list in place of some value.'),
        (
            "strategy = ['ddp', 'flat']\n",
            'run.strategy = "flat": changes nothing at the baseline, which has the first value of every factor. '
            "Put another first, or leave it out.",
        ),
    ],
)
def test_one_factor_at_a_time_refuses_what_it_cannot_show(mistakes, lines: str, said: str) -> None:
    assert mistakes(f"[run]\nranks = 1\n{lines}", "study.design=one-at-a-time") == [said]
    assert mistakes("", "study.design=one-at-time") == [
        'study.design = "one-at-time": must be "grid" or "one-at-a-time".'
    ]


def test_more_hosts_than_there_are_are_no_mistake_where_they_are_left_out(load, mistakes) -> None:
    lines = "[run]\nranks = 4\nhosts = [1, 2]\n"
    assert len(mistakes(lines)) == 1
    assert load(lines, "study.fits=machine").vary == {"run.hosts": (1, 2)}
