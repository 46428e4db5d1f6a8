"""Checks of this machine: what was found, whether a study can run with it, and a remedy.

torch is checked in a separate process, at the same time as everything else: it may hang, crash or be missing.
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

# Creates a process group of one rank: gloo then opens its network interface, which may fail.
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
    """The result of one check."""

    name: str
    found: str
    """The result as text."""
    status: str = "ok"
    """ok; warning if figures will be less accurate; error if a study cannot run."""
    remedy: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    """The result as values."""


def checks(folder: Path) -> Generator[Check, None, None]:
    """All checks of this machine; `folder` is the folder for runs."""
    torch_process = start_torch()
    try:
        yield from (_cores(), _load(), _memory())
        yield from (_loopback(), _shared_memory(), *_folders(folder), _data_sets(), _launchers())
        yield from _torch(*torch_facts(torch_process))
    finally:
        torch_process.kill()


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
    remedy = ""
    if quota is not None and quota < len(facts["allowed"]):
        remedy = "Under a CPU quota, ranks cannot have dedicated cores. Request whole cores (a CPU set) instead."
    elif here.logical_cores < 2:
        remedy = "Two ranks would share one core: studies run here, but do not measure scaling."
    return _warned("Cores", text, remedy, facts)


def _load() -> Check:
    from paceline.launch.machine import this_machine

    load, usable = os.getloadavg()[0], this_machine().logical_cores
    found = f"load {load:.1f} over the last minute, on {usable} cores"
    remedy = "Other programs are running: times will be noisy. Wait, or end them (see `top`)."
    return _warned("Idle", found, remedy if load >= 0.3 * usable else "", {"load": load})


def _memory() -> Check:
    import psutil

    from paceline.launch.machine import cgroup_limits
    from paceline.launch.placement import RANK_BYTES

    memory, limit = psutil.virtual_memory(), cgroup_limits().memory_bytes
    available = min(memory.available, limit or memory.available)
    found = f"{bytes_text(memory.total)}, {bytes_text(available)} available"
    found += f", limited to {bytes_text(limit)}" if limit else ""
    facts = {"total_bytes": memory.total, "available_bytes": available, "limit_bytes": limit}
    rank, wanted = bytes_text(RANK_BYTES), bytes_text(_LITTLE_MEMORY_BYTES)
    remedy = f"A rank needs about {rank} without its model and data: free at least {wanted}."
    return _warned("Memory", found, remedy if available < _LITTLE_MEMORY_BYTES else "", facts)


def _loopback() -> Check:
    """Whether processes of this machine can connect over 127.0.0.1, as ranks do."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = server.getsockname()
            with socket.create_connection(address, timeout=2) as caller, server.accept()[0] as answerer:
                caller.sendall(b"?")
                answerer.recv(1)
    except OSError as error:
        remedy = (
            "Ranks connect over 127.0.0.1. Bring the interface up (`ip link set lo up`) or allow it in the firewall."
        )
        return Check(name="Loopback", found=f"does not work: {error}", status="error", remedy=remedy)
    return Check(name="Loopback", found="works")


def _shared_memory(folder: Path = Path("/dev/shm")) -> Check:
    """Shared memory, which PyTorch's DataLoader and NCCL use; Paceline's own training loop maps files instead."""
    if not folder.is_dir():
        return Check(name="Shared memory", found=f"there is no {folder}; Paceline's own training loop does not need it")
    free = shutil.disk_usage(folder).free
    remedy = "PyTorch's DataLoader and NCCL need more: start the container with --shm-size=1g."
    return _warned(
        "Shared memory", f"{bytes_text(free)} free", remedy if free < 64_000_000 else "", {"free_bytes": free}
    )


def _folders(folder: Path) -> Iterator[Check]:
    """Whether the cache and the folder for runs are writable, and their free space."""
    from paceline.identity import cache_folder

    yield _folder("Cache", cache_folder(), "Choose another one: set PACELINE_CACHE to a folder that you can write to.")
    yield _folder("Runs", folder, "Choose another one: cd to it, or name it with --out DIR.")


def _folder(name: str, folder: Path, remedy: str) -> Check:
    """Whether a file can be written in a folder, or in its closest existing parent."""
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
    little = f"Free some space. {remedy}" if free < _LITTLE_DISK_BYTES else ""
    return _warned(name, f"{folder}, {bytes_text(free)} free", little, facts)


def _warned(name: str, found: str, remedy: str, facts: dict[str, Any]) -> Check:
    """A check with a warning if there is a remedy."""
    return Check(name=name, found=found, status="warning" if remedy else "ok", remedy=remedy, facts=facts)


def _data_sets() -> Check:
    from paceline.data.store import catalog_state

    states = catalog_state()
    here = [state.name for state in states if state.cached]
    missing = [state.name for state in states if not state.cached]
    found = (
        f"in the cache: {', '.join(here) or 'none'}; fetched or generated when needed: {', '.join(missing) or 'none'}"
    )
    return Check(name="Data sets", found=found, facts={"cached": here, "missing": missing})


def _launchers() -> Check:
    """The launchers, a line each. A missing one is not an error, because a study uses only one."""
    from paceline.app.launcher_checks import launcher_states

    there = launcher_states()
    lines = [
        f"{starter.name:<9} {starter.text if starter.works else f'not usable: {starter.text}'}" for starter in there
    ]
    facts = {starter.name: {"works": starter.works, "text": starter.text} for starter in there}
    return Check(name="Launchers", found="\n".join(lines), facts=facts)


def start_torch() -> subprocess.Popen[str]:
    """Start the process that checks torch, with the network interface of ranks."""
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
    """The facts about torch and an empty reason; None and the reason if the process failed."""
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
    """The checks of torch: version, BLAS, backends and GPUs."""
    if facts is None:
        remedy = "Install it in this environment, then test it: python -c 'import torch'"
        yield Check(name="PyTorch", found=reason, status="error", remedy=remedy)
        return
    yield Check(name="PyTorch", found=facts["version"], facts={"version": facts["version"]})
    numbers = {key: facts[key] for key in ("blas", "capability", "threads")}
    found = f"{facts['blas']}, {facts['capability']}; {facts['threads']} threads by default; a rank uses 1"
    yield Check(name="BLAS", found=found, facts=numbers)
    yield _backends(facts)
    yield _gpus(facts)


def _backends(facts: dict[str, Any]) -> Check:
    found = ", ".join(facts["backends"]) or "none"
    backends = {"backends": facts["backends"]}
    if "gloo" not in facts["backends"]:
        remedy = "Several ranks on CPUs need gloo: install a build of torch that has it."
        return Check(name="Backends", found=found, status="error", remedy=remedy, facts=backends)
    if facts["gloo_error"]:
        remedy = "Ranks connect over the loopback interface: bring it up (`ip link set lo up`)."
        text = f"{found}; gloo fails: {facts['gloo_error']}"
        return Check(name="Backends", found=text, status="error", remedy=remedy, facts=backends)
    return Check(name="Backends", found=f"{found}; gloo works", facts=backends)


def _gpus(facts: dict[str, Any]) -> Check:
    from paceline.launch.machine import this_machine

    of_torch, of_driver = facts["gpus"], list(this_machine().gpus)
    found, remedy = ", ".join(of_torch) or "none; ranks use the CPU", ""
    if of_driver and not of_torch:
        found = f"{', '.join(of_driver)}; torch sees none"
        remedy = "This build of torch cannot use them: install one with CUDA that fits the driver (see `nvidia-smi`)."
    return _warned("GPUs", found, remedy, {"torch": of_torch, "driver": of_driver, "cuda": facts["cuda"]})
