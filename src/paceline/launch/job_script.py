"""Job scripts for schedulers. No value of a study file can become a shell command or another directive.

    directives   #SBATCH --partition="gpu"         every value is checked against a pattern
    commands     srun --ntasks=2 ... wrapper ...   every argument is quoted for the shell

Pure: `--dry-run` and the scheduler get the same text. An invalid value is refused, never repaired. No value may contain
a line break, a quote, a comment sign or an escape, so none can end its directive.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from paceline import catalog
from paceline.errors import RequestError
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point
from paceline.storage.folder import RunFolder

_VALUE = r"[A-Za-z0-9_.,:/@+=%&|*()\[\]][A-Za-z0-9_.,:/@+=%&|*()\[\]-]*"
_MODULE = r"[A-Za-z0-9_][A-Za-z0-9_.,:/@+=-]*"
_VALUE_TEXT = "Letters, digits and . , : / @ + = % & | * ( ) [ ] _ - are allowed, and no dash in front."
_SLURM_TIME = r"\d+|\d+:\d\d|\d+:\d\d:\d\d|\d+-\d+|\d+-\d+:\d\d|\d+-\d+:\d\d:\d\d"
_PBS_TIME = r"\d+:\d\d:\d\d"
# Options that Paceline sets itself: with other values the launcher could not watch the run.
_OWN_SLURM = (
    *("job-name", "nodes", "ntasks", "ntasks-per-node", "cpus-per-task", "account", "partition", "time", "constraint"),
    *("gpus-per-node", "signal", "requeue", "no-requeue", "output", "error", "input", "chdir", "open-mode", "export"),
    *("array", "wrap", "wait", "test-only", "parsable", "kill-on-invalid-dep", "clusters"),
)
_OWN_PBS = ("-N", "-A", "-q", "-j", "-o", "-e", "-r", "-J", "-V", "-v", "-W block", "-I", "-l select", "-l walltime")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """The contents of a job script, besides the point."""

    name: str
    """As the queue shows it."""
    folder: RunFolder
    settings: LaunchSettings
    wrapper: tuple[str, ...]
    """The command of one rank wrapper."""
    mpiexec: str
    """The mpiexec that starts the ranks if srun does not."""


def slurm_script(point: Point, plan: JobPlan) -> str:
    """The script of one run for sbatch."""
    check_slurm(point, plan.settings)
    settings = plan.settings
    options = [
        ("job-name", _label(plan.name)),
        ("nodes", str(point.hosts)),
        ("ntasks", str(point.processes)),
        ("ntasks-per-node", str(max(point.ranks_on_hosts))),
        ("cpus-per-task", str(_threads(point))),
        ("account", settings.account),
        ("partition", settings.partition),
        ("time", settings.time_limit),
        ("constraint", settings.constraint),
        ("gpus-per-node", str(settings.gpus_per_host or "")),
        ("signal", _signal(settings)),
    ]
    folder = _path(plan.folder)
    # SLURM expands % in the name of the output file only.
    log = _path(RunFolder(plan.folder.path), "logs/launcher.log").replace("%", "%%")
    lines = [f'#SBATCH --{name}="{value}"' for name, value in options if value]
    lines += [f'#SBATCH --chdir="{folder}"', f'#SBATCH --output="{log}"', "#SBATCH --open-mode=append"]
    # SLURM must not requeue by itself: the launcher has to prepare the folder for another attempt.
    lines += ["#SBATCH --no-requeue", "#SBATCH --export=ALL"]
    lines += [f"#SBATCH {directive}" for directive in settings.directives]
    restarted = (
        'if [ "${SLURM_RESTART_COUNT:-0}" != 0 ]; then echo "requeued: paceline submits a job of its own"; exit 1; fi'
    )
    start = _srun(point) if settings.start == "srun" else (plan.mpiexec, "-n", str(point.processes))
    return _script(lines, [restarted], plan, start)


def pbs_script(point: Point, plan: JobPlan) -> str:
    """The script of one run for qsub, with the options of PBS Professional and OpenPBS."""
    check_pbs(point, plan.settings)
    settings = plan.settings
    _checked("the study's folder", str(plan.folder.path.resolve()), r"[A-Za-z0-9_./+@=-]+", "PBS takes no other path.")
    lines = [f"#PBS -N {_label(plan.name)[:230]}"]
    lines += [f"#PBS -A {settings.account}"] if settings.account else []
    lines += [f"#PBS -q {settings.partition}"] if settings.partition else []
    lines += [f"#PBS -l select={_select(point, settings)}", "#PBS -l place=scatter"]
    lines += [f"#PBS -l walltime={settings.time_limit}"] if settings.time_limit else []
    lines += ["#PBS -j oe", f"#PBS -o {plan.folder.path.resolve() / 'logs' / 'launcher.log'}", "#PBS -r n"]
    lines += [f"#PBS {directive}" for directive in settings.directives]
    start = (plan.mpiexec, "-n", str(point.processes))
    return _script(lines, [f"cd {shlex.quote(str(plan.folder.path.resolve()))} || exit 1"], plan, start)


def check_slurm(point: Point, settings: LaunchSettings) -> None:
    """Raise RequestError for settings that are not allowed in a SLURM job script."""
    _check(point, settings, time=_SLURM_TIME, example="00:30:00, 30 (minutes) or 1-12:00:00")
    for directive in settings.directives:
        _checked(
            "launch.directives",
            directive,
            rf"--[a-z][a-z0-9-]*(={_VALUE})?",
            f"--option or --option=value. {_VALUE_TEXT}",
        )
        name = directive.removeprefix("--").split("=")[0]
        # sbatch accepts any prefix of an option's name.
        own = next((own for own in _OWN_SLURM if own.startswith(name)), None)
        _refuse_own(directive, None if own is None else f"--{own}")
    limit_s = time_limit_s(settings.time_limit)
    if limit_s is not None and limit_s < 2 * settings.grace_s:
        raise RequestError(
            f"launch.time_limit = {settings.time_limit!r} is less than twice launch.grace_s ({settings.grace_s:g} s): "
            "the job would be warned of its end as soon as it begins.",
            right="launch.grace_s before its time limit, a job is warned to write a checkpoint and exit.",
            next="Raise launch.time_limit, or lower launch.grace_s; 0 turns the warning off.",
        )


def check_pbs(point: Point, settings: LaunchSettings) -> None:
    """Raise RequestError for settings that are not allowed in a PBS job script."""
    _check(point, settings, time=_PBS_TIME, example="00:30:00")
    for directive in settings.directives:
        _checked(
            "launch.directives",
            directive,
            rf"-[A-Za-z]( {_VALUE})?",
            f"-x or -x value, as in -l place=excl. {_VALUE_TEXT}",
        )
        _refuse_own(directive, next((own for own in _OWN_PBS if directive.startswith(own)), None))


def time_limit_s(time_limit: str) -> float | None:
    """A time limit as SLURM writes it, in seconds; None if there is none."""
    days, _, rest = time_limit.rpartition("-") if "-" in time_limit else ("", "", time_limit)
    if not re.fullmatch(_SLURM_TIME, time_limit):
        return None
    parts = [int(part) for part in rest.split(":")]
    if days:
        hours, minutes, secs = (*parts, 0, 0)[:3]
        return int(days) * 86400.0 + hours * 3600 + minutes * 60 + secs
    if len(parts) == 1:
        return parts[0] * 60.0
    hours, minutes, secs = (0, *parts)[-3:]
    return hours * 3600.0 + minutes * 60 + secs


def _check(point: Point, settings: LaunchSettings, *, time: str, example: str) -> None:
    for key in ("account", "partition", "constraint"):
        if value := getattr(settings, key):
            _checked(f"launch.{key}", value, _VALUE, _VALUE_TEXT)
    if settings.time_limit:
        _checked("launch.time_limit", settings.time_limit, time, f"A time as the scheduler writes it: {example}.")
    for module in settings.modules:
        _checked("launch.modules", module, _MODULE, "The name of one module, as in gcc/12.2.")
    if point.hosts > 1:
        _checked(
            "launch.interface",
            settings.interface,
            r"[A-Za-z0-9_][A-Za-z0-9_.:@-]*",
            "The network between the hosts: eth0.",
        )


def _checked(what: str, value: str, pattern: str, right: str) -> None:
    if not re.fullmatch(pattern, value):
        raise RequestError(
            f"{what} = {value!r} is not allowed in a job script.",
            right=right,
            next="Correct it in the study file or the site profile; --dry-run shows the script.",
        )


def _refuse_own(directive: str, own: str | None) -> None:
    if own is not None:
        raise RequestError(
            f"launch.directives has {directive!r}, and Paceline sets {own} itself.",
            right="Hosts, ranks and threads come from [run]; account, partition, time_limit, constraint and "
            "gpus_per_host from [launch].",
            next="Remove it from launch.directives.",
        )


def _path(folder: RunFolder, name: str = "") -> str:
    """A path for the double quotes of a directive."""
    path = str(folder.path.resolve() / name)
    if "\\" in path or not path.isprintable():
        raise RequestError(
            f"The folder {str(folder.path)!r} has a line break, a control character or a backslash in its name.",
            right="A directive of a job script cannot contain these.",
            next="Choose another folder with --out DIR.",
        )
    return path.replace('"', '\\"')


def _label(name: str) -> str:
    """A job name for the queue; invalid characters are replaced."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).lstrip("-.")[:120] or "paceline"


def _threads(point: Point) -> int:
    """Cores of one process: every task of a SLURM job has the same number."""
    return max(point.cores or point.threads, point.options.get("server_threads", 1))


def _signal(settings: LaunchSettings) -> str:
    """When the warning is sent and to whom: the rank wrappers under srun, the script under mpiexec."""
    if not settings.grace_s:
        return ""
    return f"{'' if settings.start == 'srun' else 'B:'}USR1@{math.ceil(settings.grace_s)}"


def _srun(point: Point) -> tuple[str, ...]:
    """srun with its options: it does not inherit all options of the job."""
    mpi = "pmi2" if catalog.strategy(point.strategy).needs_mpi or point.data.read == "mpi-io" else "none"
    return (
        "srun",
        f"--nodes={point.hosts}",
        f"--ntasks={point.processes}",
        f"--cpus-per-task={_threads(point)}",
        "--distribution=block",  # consecutive ranks on one host, as with every launcher
        "--kill-on-bad-exit=1",
        f"--mpi={mpi}",
        *(() if point.pin else ("--cpu-bind=none",)),
    )


def _select(point: Point, settings: LaunchSettings) -> str:
    """The hosts as PBS writes them: `1:ncpus=2:mpiprocs=2+1:ncpus=1:mpiprocs=1`."""
    extra = f":ngpus={settings.gpus_per_host}" if settings.gpus_per_host else ""
    extra += f":{settings.constraint}" if settings.constraint else ""
    counts = point.ranks_on_hosts
    return "+".join(
        f"{counts.count(ranks)}:ncpus={ranks * _threads(point)}:mpiprocs={ranks}{extra}"
        for ranks in dict.fromkeys(counts)
    )


def _script(directives: Sequence[str], first: Sequence[str], plan: JobPlan, start: tuple[str, ...]) -> str:
    """Directives, then modules, then the ranks in the background, so that the script can handle a warning."""
    folder = RunFolder(plan.folder.path.resolve())
    notice, code = shlex.quote(str(folder.notice)), shlex.quote(str(folder.exit_code))
    shell = "#!/bin/bash -l" if plan.settings.modules else "#!/bin/bash"  # `module` is defined in login shells
    lines = [shell, *directives, "", *first]
    lines += [f"module load {shlex.quote(module)} || exit 1" for module in plan.settings.modules]
    lines += [
        f"trap {shlex.quote(f'touch {notice}')} USR1 TERM",
        # The code goes through a file: `wait` loses it if a warning arrives while the ranks end.
        "{",
        "    trap : USR1 TERM",
        f"    {shlex.join((*start, *plan.wrapper))}",
        f'    echo "$?" >{code}',
        "} &",
        'while kill -0 "$!" 2>/dev/null; do wait "$!"; done',
        f'read -r code <{code} && exit "$code"',
        "exit 1",
    ]
    return "\n".join(lines) + "\n"
