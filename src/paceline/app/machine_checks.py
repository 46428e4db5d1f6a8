"""What a study needs of a machine, looked at one thing at a time: found, good or not, and what to do about it.

Nothing here imports torch: it is asked in a process of its own, which can hang, crash or be
missing without taking the doctor along, and which runs while everything else is looked at.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.units import bytes_text

TORCH_TIMEOUT_S = 20.0
_LITTLE_DISK_BYTES = 2_000_000_000
_LITTLE_MEMORY_BYTES = 1_000_000_000

# Joins a group of one rank: gloo then opens its network interface, which is where it fails.
_ASK_TORCH = """
import json, re, torch, torch.distributed as dist
config = torch.__config__.show()
facts = {
    "version": torch.__version__,
    "threads": torch.get_num_threads(),
    "blas": (re.findall(r"BLAS_INFO=(\\w+)", config) or ["unknown"])[0],
    "capability": torch.backends.cpu.get_cpu_capability(),
    "cuda": torch.version.cuda,
    "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
    "backends": [name for name in ("gloo", "nccl", "mpi") if dist.is_available() and dist.is_backend_available(name)],
    "gloo_error": None,
}
if "gloo" in facts["backends"]:
    try:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        dist.all_reduce(torch.ones(1))
        dist.destroy_process_group()
    except RuntimeError as error:
        facts["gloo_error"] = str(error).splitlines()[0]
print(json.dumps(facts))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    found: str
    """In words."""
    status: str = "ok"
    """ok; warning where figures will suffer; error where a study cannot run."""
    remedy: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    """The same for programs."""


def checks(folder: Path) -> Generator[Check, None, None]:
    """Everything that is looked at; `folder` is where runs would go."""
    asked = start_torch()
    try:
        yield from (_cores(), _load(), _memory())
        yield from (_loopback(), _shared_memory(), *_folders(folder), _data_sets(), _launchers())
        yield from _torch(*torch_facts(asked))
    finally:
        asked.kill()


def _cores() -> Check:
    import psutil

    from paceline.launch.machine import cgroup_limits, cores, this_machine

    here, quota = this_machine(), cgroup_limits().cpus
    facts = {
        "cpu": here.cpu,
        "physical": psutil.cpu_count(logical=False),
        "logical": psutil.cpu_count(),
        "allowed": cores(),
        "quota": quota,
        "usable": here.logical_cores,
    }
    text = f"{facts['physical'] or 'unknown'} physical, {facts['logical']} logical, {here.logical_cores} usable"
    text += f", CPU quota {'none' if quota is None else f'of {quota:g} cores'}; {here.cpu}"
    if quota is not None and quota < len(facts["allowed"]):
        remedy = "Ranks cannot be given cores of their own under a quota. Ask for whole cores (a CPU set) instead."
        return Check(name="Cores", found=text, status="warning", remedy=remedy, facts=facts)
    if here.logical_cores < 2:
        remedy = "Two ranks would take turns on one core: scaling cannot be measured here, only tried."
        return Check(name="Cores", found=text, status="warning", remedy=remedy, facts=facts)
    return Check(name="Cores", found=text, facts=facts)


def _load() -> Check:
    from paceline.launch.machine import this_machine

    load, usable = os.getloadavg()[0], this_machine().logical_cores
    found = f"load {load:.1f} over the last minute, on {usable} cores"
    if load < 0.3 * usable:
        return Check(name="Idle", found=found, facts={"load": load})
    remedy = "Something else is running: times will be noisy. Wait, or end it (see `top`)."
    return Check(name="Idle", found=found, status="warning", remedy=remedy, facts={"load": load})


def _memory() -> Check:
    import psutil

    from paceline.launch.machine import cgroup_limits
    from paceline.launch.placement import RANK_BYTES

    memory, limit = psutil.virtual_memory(), cgroup_limits().memory_bytes
    available = min(memory.available, limit or memory.available)
    found = f"{bytes_text(memory.total)}, {bytes_text(available)} available"
    found += f", limited to {bytes_text(limit)}" if limit else ""
    facts = {"total_bytes": memory.total, "available_bytes": available, "limit_bytes": limit}
    if available < _LITTLE_MEMORY_BYTES:
        rank, wanted = bytes_text(RANK_BYTES), bytes_text(_LITTLE_MEMORY_BYTES)
        remedy = f"A rank takes some {rank} before its model and data: free at least {wanted}."
        return Check(name="Memory", found=found, status="warning", remedy=remedy, facts=facts)
    return Check(name="Memory", found=found, facts=facts)


def _loopback() -> Check:
    """Whether processes of this machine can talk over 127.0.0.1, as ranks do."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = server.getsockname()
            with socket.create_connection(address, timeout=2) as caller, server.accept()[0] as answerer:
                caller.sendall(b"?")
                answerer.recv(1)
    except OSError as error:
        remedy = "Ranks meet on 127.0.0.1. Bring the interface up (`ip link set lo up`) or allow it in the firewall."
        return Check(name="Loopback", found=f"does not work: {error}", status="error", remedy=remedy)
    return Check(name="Loopback", found="works")


def _shared_memory(folder: Path = Path("/dev/shm")) -> Check:
    """Shared memory, which PyTorch's data loading and NCCL use. Paceline's own loop maps files instead."""
    if not folder.is_dir():
        return Check(name="Shared memory", found=f"there is no {folder}; Paceline's own loop does without")
    free = shutil.disk_usage(folder).free
    facts = {"free_bytes": free}
    if free < 64_000_000:
        remedy = "PyTorch's DataLoader and NCCL need more of it: in a container, start it with --shm-size=1g."
        return Check(
            name="Shared memory", found=f"{bytes_text(free)} free", status="warning", remedy=remedy, facts=facts
        )
    return Check(name="Shared memory", found=f"{bytes_text(free)} free", facts=facts)


def _folders(folder: Path) -> Iterator[Check]:
    """Whether the cache and the folder for runs can be written to, and how much fits."""
    from paceline.identity import cache_folder

    yield _folder("Cache", cache_folder(), "Choose another one: set PACELINE_CACHE to a folder that you can write to.")
    yield _folder("Runs", folder, "Choose another one: cd to it, or name it with --out DIR.")


def _folder(name: str, folder: Path, remedy: str) -> Check:
    """A folder, by way of a file that is written there; one that does not exist yet, by the one above it."""
    folder = folder.absolute()
    place = next((path for path in (folder, *folder.parents) if path.exists()), Path("/"))
    facts: dict[str, Any] = {"folder": str(folder), "writable": False}
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"?")
    except OSError as error:
        found = f"{folder} cannot be written to: {error.strerror}"
        return Check(name=name, found=found, status="error", remedy=remedy, facts=facts)
    free = shutil.disk_usage(place).free
    facts |= {"writable": True, "free_bytes": free}
    found = f"{folder}, {bytes_text(free)} free"
    if free < _LITTLE_DISK_BYTES:
        return Check(name=name, found=found, status="warning", remedy=f"Free some space. {remedy}", facts=facts)
    return Check(name=name, found=found, facts=facts)


def _data_sets() -> Check:
    from paceline.data.store import catalog_state

    states = catalog_state()
    here = [state.name for state in states if state.cached]
    missing = [state.name for state in states if not state.cached]
    found = f"in the cache: {', '.join(here) or 'none'}; fetched or made when needed: {', '.join(missing) or 'none'}"
    return Check(name="Data sets", found=found, facts={"cached": here, "missing": missing})


def _launchers() -> Check:
    """The ways to start ranks, a line each. One that is missing is no fault: a study names the one that it needs."""
    from paceline.app.launcher_checks import starters

    there = starters()
    lines = [
        f"{starter.name:<9} {starter.text if starter.works else f'not usable: {starter.text}'}" for starter in there
    ]
    facts = {starter.name: {"works": starter.works, "text": starter.text} for starter in there}
    return Check(name="Launchers", found="\n".join(lines), facts=facts)


def start_torch() -> subprocess.Popen[str]:
    """Ask torch about itself in a process of its own, where gloo gets the interface that ranks get."""
    from paceline.identity import inherited_environment
    from paceline.launch.child import loopback_environment, python

    return subprocess.Popen(
        python("-c", _ASK_TORCH),
        env=inherited_environment() | loopback_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def torch_facts(
    process: subprocess.Popen[str], timeout_s: float = TORCH_TIMEOUT_S
) -> tuple[dict[str, Any] | None, str]:
    """What torch says about itself; None and the reason where it says nothing."""
    try:
        output, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None, f"did not answer within {timeout_s:.0f} s"
    if process.returncode:
        last = (errors.strip().splitlines() or [f"ended with {process.returncode}"])[-1]
        return None, f"does not work: {last}"
    return json.loads(output.splitlines()[-1]), ""


def _torch(facts: dict[str, Any] | None, reason: str) -> Iterator[Check]:
    """torch, its number crunching, its communication and its GPUs."""
    if facts is None:
        remedy = "Install it into this environment and try it alone: python -c 'import torch'"
        yield Check(name="PyTorch", found=reason, status="error", remedy=remedy)
        return
    yield Check(name="PyTorch", found=facts["version"], facts={"version": facts["version"]})
    numbers = {key: facts[key] for key in ("blas", "capability", "threads")}
    found = f"{facts['blas']}, {facts['capability']}; {facts['threads']} threads by default, a rank takes 1"
    yield Check(name="BLAS", found=found, facts=numbers)
    yield _backends(facts)
    yield _gpus(facts)


def _backends(facts: dict[str, Any]) -> Check:
    found = ", ".join(facts["backends"]) or "none"
    told = {"backends": facts["backends"]}
    if "gloo" not in facts["backends"]:
        remedy = "More than one rank on CPUs needs gloo: install a build of torch that has it."
        return Check(name="Backends", found=found, status="error", remedy=remedy, facts=told)
    if facts["gloo_error"]:
        remedy = "Ranks meet over the loopback interface: bring it up (`ip link set lo up`)."
        text = f"{found}; gloo fails: {facts['gloo_error']}"
        return Check(name="Backends", found=text, status="error", remedy=remedy, facts=told)
    return Check(name="Backends", found=f"{found}; gloo works", facts=told)


def _gpus(facts: dict[str, Any]) -> Check:
    from paceline.launch.machine import this_machine

    seen, driven = facts["gpus"], list(this_machine().gpus)
    told = {"torch": seen, "driver": driven, "cuda": facts["cuda"]}
    if driven and not seen:
        remedy = "This build of torch cannot use them: install one with CUDA that fits the driver (see `nvidia-smi`)."
        found = f"{', '.join(driven)}; torch sees none"
        return Check(name="GPUs", found=found, status="warning", remedy=remedy, facts=told)
    return Check(name="GPUs", found=", ".join(seen) or "none; ranks use the CPU", facts=told)
