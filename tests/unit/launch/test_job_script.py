"""Job scripts: what they ask for, and that nothing of a study file can become a command or a directive."""

import shlex
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from light_ranks.light_launch import point, wait_for
from paceline.errors import RequestError
from paceline.launch.job_script import JobPlan, check_slurm, pbs_script, slurm_script, time_limit_s
from paceline.launch.pbs import PbsLauncher
from paceline.launch.slurm.slurm_launcher import SlurmLauncher
from paceline.records.settings import DataSettings, LaunchSettings
from paceline.storage.folder import RunFolder

SETTINGS = LaunchSettings(interface="ib0")
HOSTILE = [
    "a\n#SBATCH --uid=0",
    "a\r#SBATCH",
    "a b",
    "a'b",
    'a"b',
    "$(id)",
    "`id`",
    "a;id",
    "a\\b",
    "#a",
    "a#b",
    "--wrap=id",
    "-n9",
    "a\x00b",
    "a>b",
    "~root",
    "a\tb",
    "é",
]


def script(where, write=slurm_script, path=Path("/data/run"), **changes):
    settings = replace(SETTINGS, **changes)
    plan = JobPlan(
        name="paceline-x", folder=RunFolder(path), settings=settings, wrapper=("python", "keep it"), mpiexec="mpiexec"
    )
    return write(where, plan)


def directives(text, mark="#SBATCH "):
    return [line.removeprefix(mark) for line in text.splitlines() if line.startswith(mark)]


def commands(text):
    return [shlex.split(line) for line in text.splitlines() if line and not line.startswith("#")]


def started(text):
    """The command that starts the ranks."""
    return next(line for line in commands(text) if line[0] in ("srun", "mpiexec"))


def test_a_job_asks_for_hosts_ranks_and_threads():
    lines = directives(script(point(5, threads=3, hosts=2)))
    for wanted in ('--nodes="2"', '--ntasks="5"', '--ntasks-per-node="3"', '--cpus-per-task="3"', "--no-requeue"):
        assert wanted in lines
    assert '--chdir="/data/run"' in lines
    assert '--output="/data/run/logs/launcher.log"' in lines
    assert not any(line.startswith(("--account", "--partition", "--time", "--constraint", "--gpus")) for line in lines)


def test_a_job_asks_for_what_launch_says():
    text = script(
        point(2),
        account="physics",
        partition="gpu,cpu",
        time_limit="1-12:00:00",
        constraint="[a|b]&c*2",
        gpus_per_host=2,
        directives=("--exclusive", "--mem-per-cpu=4G"),
        grace_s=90.5,
    )
    lines = directives(text)
    for wanted in (
        '--account="physics"',
        '--partition="gpu,cpu"',
        '--time="1-12:00:00"',
        '--constraint="[a|b]&c*2"',
        '--gpus-per-node="2"',
        '--signal="USR1@91"',
        "--exclusive",
        "--mem-per-cpu=4G",
    ):
        assert wanted in lines


def test_srun_starts_the_ranks_and_brings_mpi_where_it_is_needed():
    where = point(4, hosts=2)
    assert started(script(where))[:4] == ["srun", "--nodes=2", "--ntasks=4", "--cpus-per-task=1"]
    assert started(script(where))[-2:] == ["python", "keep it"]
    assert "--mpi=none" in started(script(where))
    assert "--mpi=pmi2" in started(script(replace(where, strategy="mpi-allreduce")))
    assert "--mpi=pmi2" in started(script(replace(where, data=DataSettings(read="mpi-io"))))
    assert "--cpu-bind=none" in started(script(replace(where, pin=False)))


def test_mpiexec_starts_the_ranks_where_it_is_asked_to_and_the_script_is_warned_in_its_place():
    text = script(point(4), start="mpiexec")
    assert started(text) == ["mpiexec", "-n", "4", "python", "keep it"]
    assert '--signal="B:USR1@60"' in directives(text)
    assert ["trap", "touch /data/run/ranks/notice", "USR1", "TERM"] in commands(text)


def test_without_grace_nobody_is_warned():
    assert not any(line.startswith("--signal") for line in directives(script(point(1), grace_s=0.0)))


def test_modules_are_loaded_first_by_a_shell_that_has_them():
    text = script(point(1), modules=("gcc/12.2", "cuda/12"))
    assert text.startswith("#!/bin/bash -l\n")
    assert [line for line in commands(text) if line[0] == "module"] == [
        ["module", "load", "gcc/12.2", "||", "exit", "1"],
        ["module", "load", "cuda/12", "||", "exit", "1"],
    ]
    assert text.index("module load") < text.index("srun")
    assert script(point(1)).startswith("#!/bin/bash\n")


def test_a_parameter_servers_threads_count_too():
    where = replace(point(2, threads=1), options={"servers": 1, "server_threads": 4})
    lines = directives(script(where))
    assert '--ntasks="4"' in lines
    assert '--cpus-per-task="4"' in lines


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("key", ["account", "partition", "constraint", "time_limit", "modules", "directives"])
@pytest.mark.parametrize("write", [slurm_script, pbs_script])
def test_a_hostile_value_is_refused(key, value, write):
    given = (value,) if key in ("modules", "directives") else value
    with pytest.raises(RequestError, match=r"is not allowed in a job script|launch\.directives has"):
        script(point(1), write, **{key: given})


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_interface_is_refused(value):
    with pytest.raises(RequestError, match=r"launch\.interface"):
        script(point(2, hosts=2), interface=value)


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_option_value_is_refused(value):
    with pytest.raises(RequestError, match="is not allowed in a job script"):
        script(point(1), directives=(f"--comment={value}",))


@pytest.mark.parametrize(
    "directive",
    [
        "--nodes=9",
        "--requeue",
        "--requ",
        "--wrap=id",
        "--array=1-9",
        "--output=/x",
        "--export=NONE",
        "--job=x",
        "--err=x",
    ],
)
def test_what_paceline_says_itself_is_refused_abbreviated_too(directive):
    with pytest.raises(RequestError, match=r"Paceline sets .* itself"):
        script(point(1), directives=(directive,))


@pytest.mark.parametrize("directive", ["-l walltime=9", "-N x", "-o x", "-l select=9"])
def test_the_same_of_pbs(directive):
    with pytest.raises(RequestError, match=r"Paceline sets .* itself"):
        script(point(1), pbs_script, directives=(directive,))


@pytest.mark.parametrize("name", ["a\nb", "a\\b", "a\x07b", "a\rb"])
def test_a_folder_that_no_directive_can_hold_is_refused(name):
    with pytest.raises(RequestError, match="--out DIR"):
        script(point(1), path=Path("/data") / name)


def test_a_hostile_folder_stays_one_word_everywhere(tmp_path):
    name = "a b'c\"d$(touch hacked)`touch hacked`;touch hacked&|*#%j"
    folder = RunFolder(tmp_path / name)
    folder.ranks.mkdir(parents=True)
    plan = JobPlan(
        name=name, folder=folder, settings=SETTINGS, wrapper=("printf", "%s", str(folder.path)), mpiexec="env"
    )
    text = slurm_script(point(1), replace(plan, settings=replace(SETTINGS, start="mpiexec")))
    assert directives(text)[0] == '--job-name="a-b-c-d-touch-hacked-touch-hacked-touch-hacked-j"'
    # A shell reads it: `env -n 1 printf ...` fails, but whatever else a word had become would have run before.
    subprocess.run(["bash", "-c", text], cwd=tmp_path, capture_output=True, timeout=20, check=False)
    assert not list(tmp_path.rglob("hacked"))
    assert shlex.split(next(line for line in text.splitlines() if line.startswith("trap")))[1] == (
        f"touch {shlex.quote(str(folder.path / 'ranks' / 'notice'))}"
    )


def test_the_shells_part_passes_warnings_on_and_keeps_the_exit_code(tmp_path):
    folder = RunFolder(tmp_path / "a b")
    folder.ranks.mkdir(parents=True)
    # Stands in for mpiexec: takes "-n 1", and then is a rank that leaves when it finds the notice.
    fake = tmp_path / "mpiexec"
    fake.write_text('#!/bin/bash\ntouch "$0.begun"; while [ ! -e "$4" ]; do sleep 0.05; done; exit 75\n')
    fake.chmod(0o755)
    plan = JobPlan(
        name="x",
        folder=folder,
        settings=replace(SETTINGS, start="mpiexec"),
        wrapper=("wrapper", str(folder.notice)),
        mpiexec=str(fake),
    )
    path = tmp_path / "job.sh"
    path.write_text(slurm_script(point(1), plan))
    with subprocess.Popen(["bash", str(path)]) as job:
        assert wait_for((tmp_path / "mpiexec.begun").exists, 60)
        while job.poll() is None:
            job.send_signal(signal.SIGUSR1)  # again and again: each ends a `wait`
            time.sleep(0.002)
        assert job.returncode == 75


def test_a_requeued_job_starts_no_rank(tmp_path):
    text = script(point(1), path=tmp_path)
    done = subprocess.run(
        ["/bin/bash", "-c", text],
        env={"SLURM_RESTART_COUNT": "1", "PATH": ""},
        capture_output=True,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "requeued" in done.stdout


def test_a_time_limit_that_leaves_no_time_before_the_warning_is_refused():
    with pytest.raises(RequestError, match=r"less than twice launch\.grace_s"):
        check_slurm(point(1), LaunchSettings(time_limit="1", grace_s=60))
    check_slurm(point(1), LaunchSettings(time_limit="2", grace_s=60))
    check_slurm(point(1), LaunchSettings(time_limit="1", grace_s=0))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30", 1800),
        ("1:30", 90),
        ("00:30:00", 1800),
        ("2-3", 2 * 86400 + 3 * 3600),
        ("1-02:03", 86400 + 2 * 3600 + 180),
        ("1-02:03:04", 86400 + 2 * 3600 + 184),
        ("", None),
        ("UNLIMITED", None),
    ],
)
def test_time_limits_in_seconds(text, expected):
    assert time_limit_s(text) == expected


def test_the_script_of_pbs():
    text = script(
        point(3, threads=2, hosts=2),
        pbs_script,
        account="physics",
        partition="gpu",
        time_limit="01:00:00",
        constraint="cpu_type=rome",
        gpus_per_host=1,
        modules=("mpich",),
        directives=("-M me@example.org", "-k doe"),
    )
    chunks = "1:ncpus=4:mpiprocs=2:ngpus=1:cpu_type=rome+1:ncpus=2:mpiprocs=1:ngpus=1:cpu_type=rome"
    assert directives(text, "#PBS ") == [
        "-N paceline-x",
        "-A physics",
        "-q gpu",
        f"-l select={chunks}",
        "-l place=scatter",
        "-l walltime=01:00:00",
        "-j oe",
        "-o /data/run/logs/launcher.log",
        "-r n",
        "-M me@example.org",
        "-k doe",
    ]
    assert started(text) == ["mpiexec", "-n", "3", "python", "keep it"]
    assert "cd /data/run || exit 1" in text
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0


def test_pbs_takes_no_folder_with_blanks():
    with pytest.raises(RequestError, match="the study's folder"):
        script(point(1), pbs_script, path=Path("/data/a b"))


@pytest.mark.parametrize("launcher", [SlurmLauncher, PbsLauncher])
def test_a_dry_run_shows_the_script_that_would_be_used(launcher):
    text = launcher(settings=LaunchSettings(partition="short")).script(point(2), RunFolder(Path("/data/7")))
    assert "short" in text and "paceline.launch.wrapper.rank_wrapper /data/7" in text
