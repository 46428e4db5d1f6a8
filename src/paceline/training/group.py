"""Device, backend and process groups of this rank."""

from __future__ import annotations

import traceback
from typing import Any

import torch
import torch.distributed as dist

from paceline.errors import PacelineError, RequestError, RunError
from paceline.identity import Identity
from paceline.layout import Layout
from paceline.records.run import Manifest
from paceline.storage.folder import RunFolder
from paceline.training import mpi_session
from paceline.training.rendezvous import rendezvous


class RefusedByRank0(RunError):
    """Rank 0 has refused the run in the preflight check; the reason is in rank 0's report."""


def gpu_count() -> int:
    """GPUs that this process can use."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def choose_device(asked: str, local_rank: int) -> torch.device:
    """Device of this rank: one GPU per local rank if there are GPUs and the study does not ask for the CPU."""
    gpus = gpu_count()
    if asked == "cpu" or (asked == "auto" and gpus == 0):
        return torch.device("cpu")
    if local_rank >= gpus:
        raise RequestError(
            f"Rank {local_rank} of this host has no GPU: {gpus} found, one per rank is needed.",
            right="Ask for at most as many ranks as there are GPUs, or for the CPU.",
            next="Use `--set run.device=cpu`.",
        )
    torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank)


def backend_name(device: torch.device, size: int) -> str:
    """Backend of the process group; `none` for a single rank."""
    if size == 1:
        return "none"
    return "nccl" if device.type == "cuda" else "gloo"


def join(identity: Identity, folder: RunFolder, manifest: Manifest, device: torch.device) -> None:
    """Join the process group; a single rank needs none."""
    if identity.size == 1:
        return
    place = rendezvous(identity, folder, manifest)
    # Rank 0 passes a listening socket: no other process can take the port, and no other interface is used.
    store = dist.TCPStore(
        place.address, place.port, identity.size, is_master=identity.rank == 0, master_listen_fd=place.listening_fd
    )
    # CPU tensors use gloo even with GPUs: a rank without its GPU is found before NCCL starts.
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=identity.rank, world_size=identity.size)


def axis_groups(layout: Layout, rank: int) -> dict[str, dist.ProcessGroup]:
    """This process's group along each axis; empty for a single axis, which is the group of all ranks. A collective
    call, servers included.
    """
    found: dict[str, dist.ProcessGroup] = {}
    if len(layout.axes) == 1:
        return found
    for axis in layout.axes:
        for members in layout.groups(axis.name):
            group = dist.new_group(list(members))
            if rank in members:
                assert isinstance(group, dist.ProcessGroup)
                found[axis.name] = group
    return found


def leave() -> None:
    """Leave the group after a successful run; after an error this could wait for a peer that has ended."""
    mpi_session.finalize()
    if dist.is_initialized():
        dist.destroy_process_group()


def failure_facts(error: BaseException) -> dict[str, Any]:
    """Status, message, kind and traceback of an error, as fields of a RankReport."""
    return {
        "status": "failed",
        "error": str(error) if isinstance(error, PacelineError) else f"{type(error).__name__}: {error}",
        "error_kind": "peer" if is_peer_failure(error) or isinstance(error, RefusedByRank0) else "own",
        "traceback": "".join(traceback.format_exception(error)),
    }


def is_peer_failure(error: BaseException) -> bool:
    """Whether an error is only a consequence of the failure of another rank."""
    return isinstance(error, dist.DistError | RuntimeError) and is_peer_message(str(error))


def is_peer_message(text: str) -> bool:
    """Whether an error message reports a connection that another rank has closed."""
    signs = ("connection closed", "connection reset", "connection refused", "broken pipe", "remote process exited")
    return any(sign in text.lower() for sign in signs)
