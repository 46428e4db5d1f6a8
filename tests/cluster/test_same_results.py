"""Same settings in, same run folder out; same seeds, same weights: a real training under every launcher at hand."""

import pytest

from paceline.launch.mpi_launcher import mpiexec
from paceline.records.run import RunResult
from paceline.records.settings import LaunchSettings
from paceline.storage.folder import StudyFolder
from paceline.studies.execute.execute import execute
from paceline.studies.folder.collect import collect
from paceline.studies.load.load import load_study

STUDY = """
[study]
name = "same"
[data]
dataset = "digits"
train_samples = 400
[model]
name = "cnn-small"
[train]
batch_global = 64
epochs = 2
seed = 7
checkpoint_every = 5
[run]
ranks = [2]
repeats = 1
strategy = "flat"
launcher = "{launcher}"
"""
HOSTS = """
hosts = 2
[launch]
machines = ["h1", "h2"]
agent = ["{agent}"]
interface = "eth0"
"""
# What wrappers say and programs print, beside what a run leaves under every launcher.
OF_KEEPERS = {
    "ranks/rendezvous.json",
    "logs/launcher.log",
    *(f"ranks/rank-000{r}.{end}" for r in (0, 1) for end in ("start", "end")),
}


def trained(folder, text: str) -> tuple[RunResult, set[str], tuple[str, ...]]:
    """What a study of one run came to, the files of its run folder, and the hosts of its ranks."""
    folder.mkdir()
    (folder / "same.toml").write_text(text)
    done = execute(load_study(folder / "same.toml"), folder / "out", preflight=False, cache=folder / "cache")
    assert not done.failures
    (run,) = collect(folder / "out").runs
    place = StudyFolder(folder / "out").run(run.result.point_id, 1)
    files = {str(path.relative_to(place.path)) for path in place.path.rglob("*") if path.is_file()}
    return run.result, files, run.machine.hosts


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("same") / "local", STUDY.format(launcher="local"))


@pytest.mark.parametrize("launcher", ["torchrun", "mpi"])
def test_on_one_host(local, tmp_path, launcher):
    result, files, hosts = trained(tmp_path / "run", STUDY.format(launcher=launcher))
    assert result.weights_sha256 == local[0].weights_sha256
    assert (result.test_accuracy, result.test_loss) == (local[0].test_accuracy, local[0].test_loss)
    assert files - local[1] == OF_KEEPERS
    assert local[1] <= files
    assert hosts == local[2]


@pytest.mark.parametrize("launcher", ["torchrun", "mpi"])
def test_on_two_hosts(local, tmp_path, launcher, net_hosts):
    text = STUDY.format(launcher=launcher) + HOSTS.format(agent=net_hosts.agent)
    result, files, hosts = trained(tmp_path / "run", text)
    assert result.weights_sha256 == local[0].weights_sha256
    assert files - local[1] == OF_KEEPERS
    assert hosts == ("h1", "h2")
    assert not net_hosts.processes()


def test_the_environments_own_mpiexec_is_the_one_that_is_meant():
    assert mpiexec(LaunchSettings()).endswith("/bin/mpiexec")
