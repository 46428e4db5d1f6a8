"""One rank's life where a script of the user's own trains: meet, roll call, the script as `__main__`, report.

    rank 0   a store at the meeting's own socket ──▶ MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE, ...
    script   init_process_group(): on rank 0 it finds that store in its own process, elsewhere it connects to it

The store is multi-tenant: torch asks for such a one, by its port, before it opens another. So the port is taken from
the meeting to the end, no other process can have it in between, and the script calls what it would under torchrun.
The roll call's own group is gone before the script starts.
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
from paceline.training import group, preflight_check
from paceline.training.rendezvous import Endpoint, rendezvous
from paceline.training.termination_notice import SIGNALS

_PREFIX, _ENDED = "paceline/roll-call", "paceline/ended"
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
        """Everything from meeting the other ranks to the script's end: what there is to report, and the exit code."""
        try:
            store = self._met()
            outcome = self._script()
        except Exception as error:  # noqa: BLE001 - whatever ends a rank has to reach the launcher
            return self._failure(error), 1
        if outcome.exit_code == 0:
            _wait_for_other_ranks(store, self._identity)
        return self._ended(outcome), _exit_code(outcome)

    def _met(self) -> dist.Store:
        """The store at which the ranks met, after the roll call; the script is told of it."""
        identity, manifest = self._identity, self._manifest
        place = rendezvous(identity, self._folder, manifest)
        store = _store(place, identity)
        if identity.size > 1:
            own = dist.PrefixStore(_PREFIX, store)
            dist.init_process_group("gloo", store=own, rank=identity.rank, world_size=identity.size)
        clocks = preflight_check.run_preflight_check(identity, self._folder, manifest, _device(identity))
        self._clock = clocks[identity.rank]
        if identity.size > 1:
            dist.destroy_process_group()
        told = script_environment(identity, manifest.point.ranks_on_hosts, address=place.address, port=place.port)
        set_variables(told)
        return store

    def _script(self) -> ScriptOutcome:
        point = self._manifest.point
        assert point.script is not None
        path = Path(point.script.path)
        _check_unchanged(path, point.script_digest)
        if self._manifest.warned:
            _unblock_warnings()
        if sys.flags.safe_path:  # as launchers start a rank; a script finds what lies beside it
            sys.path.insert(0, str(path.parent))
        return run_script(path, point.script.arguments, self._folder, self._identity, self._started_at_ns)

    def _ended(self, outcome: ScriptOutcome) -> RankReport:
        """The report of a rank whose script has ended, well or not."""
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
        """The report of a rank that did not come as far as its script's end."""
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
    """The store of this run, served by rank 0's process."""
    # Without a number of workers: torch counts those of the script's own store under the same key.
    return dist.TCPStore(
        place.address,
        place.port,
        is_master=identity.rank == 0,
        wait_for_workers=False,
        multi_tenant=True,
        master_listen_fd=place.listening_fd,
    )


def _wait_for_other_ranks(store: dist.Store, identity: Identity) -> None:
    """Keep the store for whoever still needs it: under torchrun it would outlive rank 0 too.

    A rank that failed is never counted: the launcher then ends this one.
    """
    if identity.size == 1:
        return
    store.add(_ENDED, 1)
    while identity.rank == 0 and store.add(_ENDED, 0) < identity.size:
        time.sleep(_POLL_S)


def _device(identity: Identity) -> torch.device:
    """The device that a script would choose for this rank, as the roll call is told; nothing is taken."""
    return torch.device("cuda", identity.local_rank) if identity.local_rank < group.gpu_count() else torch.device("cpu")


def _check_unchanged(path: Path, digest: str) -> None:
    """Raise RunError where the script is not the one that the study began with."""
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise RunError(
            f"The script {path} cannot be read on this host: {error.strerror}.",
            right="Every host has to see it at the same place: put it on a file system that all of them share.",
        ) from error
    if found != digest:
        raise RunError(
            f"The script {path} was changed since this run was planned.",
            right="All runs of a point run the same script.",
            next="Run the same command again: a changed script is another point.",
        )


def _unblock_warnings() -> None:
    """Let the signals through that announce a job's end; the keeper has held them back until here.

    A script that handles SIGUSR1 is told; one that does not must not die of the warning.
    """
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _timed_s(outcome: ScriptOutcome) -> float | None:
    """Seconds of the timed steps; None where there are none."""
    if outcome.timed_from_ns is None or outcome.timed_to_ns is None:
        return None
    return units.seconds(outcome.timed_to_ns - outcome.timed_from_ns)


def _error(outcome: ScriptOutcome) -> str:
    """What ended a script: the exception, or the code and the words that it left with."""
    if outcome.traceback is not None and outcome.error is not None:
        return outcome.error
    words = f": {outcome.error}" if outcome.error else "."
    return f"The script ended with exit code {outcome.exit_code}{words}"


def _exit_code(outcome: ScriptOutcome) -> int:
    """The script's own; one that means something else to launchers becomes 1, a failure."""
    return 1 if outcome.exit_code == STOPPED else outcome.exit_code
