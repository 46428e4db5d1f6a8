"""One rank of a user script: rendezvous, preflight check, the script as `__main__`, report.

    rank 0   a store on the rendezvous socket ──▶ MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE, ...
    script   init_process_group(): rank 0 finds that store in its own process, other ranks connect to it

The store is multi-tenant: torch looks for an existing one by its port before it opens another. The port stays in use
from the rendezvous to the end, and the script makes the same calls as under torchrun. The process group of the
preflight check is destroyed before the script starts.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from paceline import host, units
from paceline.errors import RunError
from paceline.identity import Identity, script_environment, set_variables, versions
from paceline.probe.run_script import run_script
from paceline.records.allocation import Clock
from paceline.records.run import STOPPED, Manifest, RankReport, ScriptFigures
from paceline.records.script_outcome import ScriptOutcome
from paceline.storage.folder import RunFolder
from paceline.training import allocation_check, group
from paceline.training.rendezvous import Endpoint, rendezvous
from paceline.training.termination_notice import SIGNALS

_PREFIX, _ENDED = "paceline/allocation-check", "paceline/ended"
_POLL_S = 0.05


class ScriptRank:
    """One rank that runs a script."""

    def __init__(self, identity: Identity, folder: RunFolder, manifest: Manifest, started_at_ns: int) -> None:
        self._identity = identity
        self._folder = folder
        self._manifest = manifest
        self._started_at_ns = started_at_ns
        self._clock = Clock(rank=identity.rank, offset_ns=0, error_ns=None, method="same")

    def run(self) -> tuple[RankReport, int]:
        """Report and exit code, after rendezvous, preflight check and script."""
        try:
            store = self._connected()
            outcome = self._script()
        except Exception as error:  # noqa: BLE001 - every failure has to reach the launcher
            return self._failure(error), 1
        if outcome.exit_code == 0:
            _wait_for_other_ranks(store, self._identity)
        return self._ended(outcome), _exit_code(outcome)

    def _connected(self) -> dist.Store:
        """Store of the run after the preflight check; sets the environment variables of the script."""
        identity, manifest = self._identity, self._manifest
        place = rendezvous(identity, self._folder, manifest)
        store = _store(place, identity)
        if identity.size > 1:
            own = dist.PrefixStore(_PREFIX, store)
            dist.init_process_group("gloo", store=own, rank=identity.rank, world_size=identity.size)
        clocks = allocation_check.run_allocation_check(identity, self._folder, manifest, _device(identity))
        self._clock = clocks[identity.rank]
        if identity.size > 1:
            dist.destroy_process_group()
        variables = script_environment(identity, manifest.point.ranks_on_hosts, address=place.address, port=place.port)
        set_variables(variables)
        return store

    def _script(self) -> ScriptOutcome:
        point = self._manifest.point
        assert point.script is not None
        path = Path(point.script.path)
        _check_unchanged(path, point.script_digest)
        if self._manifest.warned:
            _unblock_warnings()
        if sys.flags.safe_path:  # set by launchers; a script can import modules of its folder
            sys.path.insert(0, str(path.parent))
        return run_script(path, point.script.arguments, self._folder, self._identity, self._started_at_ns)

    def _ended(self, outcome: ScriptOutcome) -> RankReport:
        """Report of a rank whose script has ended, with success or not."""
        facts: dict[str, Any] = {"status": "done"}
        if outcome.exit_code != 0:
            error = _error(outcome)
            kind = "peer" if group.is_peer_message(error) else "own"
            facts = {"status": "failed", "error": error, "error_kind": kind, "traceback": outcome.traceback}
        return self._report(
            device=outcome.device,
            backend=outcome.backend,
            steps=outcome.steps,
            script=ScriptFigures(
                samples=outcome.timed_samples, timed_s=_timed_s(outcome), found=outcome.found, notes=outcome.notes
            ),
            **facts,
        )

    def _failure(self, error: Exception) -> RankReport:
        """Report of a rank that failed before its script ended."""
        return self._report(device="", backend="", steps=0, **group.failure_facts(error))

    def _report(self, **facts: Any) -> RankReport:
        identity = self._identity
        return RankReport(
            rank=identity.rank,
            host=identity.host,
            pid=os.getpid(),
            threads=torch.get_num_threads(),
            affinity=host.pinned(),
            versions=versions(),
            ended_at_ns=time.monotonic_ns(),
            clock_offset_ns=self._clock.offset_ns,
            clock_error_ns=self._clock.error_ns,
            **facts,
        )


def _store(place: Endpoint, identity: Identity) -> dist.TCPStore:
    """Store of this run, served by the process of rank 0."""
    # Without a number of workers: torch counts the workers of the script's store under the same key.
    return dist.TCPStore(
        place.address,
        place.port,
        is_master=identity.rank == 0,
        wait_for_workers=False,
        multi_tenant=True,
        master_listen_fd=place.listening_fd,
    )


def _wait_for_other_ranks(store: dist.Store, identity: Identity) -> None:
    """Keep the store until all ranks have ended, as torchrun does.

    A failed rank is never counted: the launcher then ends this one.
    """
    if identity.size == 1:
        return
    store.add(_ENDED, 1)
    while identity.rank == 0 and store.add(_ENDED, 0) < identity.size:
        time.sleep(_POLL_S)


def _device(identity: Identity) -> torch.device:
    """Device that a script would choose for this rank; nothing is allocated on it."""
    return torch.device("cuda", identity.local_rank) if identity.local_rank < group.gpu_count() else torch.device("cpu")


def _check_unchanged(path: Path, digest: str) -> None:
    """Raise RunError if the script differs from the one that the study began with."""
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise RunError(
            f"The script {path} cannot be read on this host: {error.strerror}.",
            right="Every host must see it under the same path: put it on a shared file system.",
        ) from error
    if found != digest:
        raise RunError(
            f"The script {path} was changed since this run was planned.",
            right="All runs of a point run the same script.",
            next="Run the same command again: a changed script is another point.",
        )


def _unblock_warnings() -> None:
    """Unblock the signals that announce the end of a job; the rank wrapper has blocked them until now.

    A script can handle SIGUSR1. One that does not must not be ended by it.
    """
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _timed_s(outcome: ScriptOutcome) -> float | None:
    """Seconds of the timed steps; None without any."""
    if outcome.timed_from_ns is None or outcome.timed_to_ns is None:
        return None
    return units.seconds(outcome.timed_to_ns - outcome.timed_from_ns)


def _error(outcome: ScriptOutcome) -> str:
    """Error message of a script: its exception, or its exit code and message."""
    if outcome.traceback is not None and outcome.error is not None:
        return outcome.error
    words = f": {outcome.error}" if outcome.error else "."
    return f"The script ended with exit code {outcome.exit_code}{words}"


def _exit_code(outcome: ScriptOutcome) -> int:
    """Exit code of the script; one with a special meaning for launchers becomes 1."""
    return 1 if outcome.exit_code == STOPPED else outcome.exit_code
