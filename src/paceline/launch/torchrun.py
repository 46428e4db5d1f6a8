"""Ranks under torchrun: one agent of torch.distributed.run per host, with one rank wrapper and rank per worker.

    launcher ──▶ torchrun on this host ───────────▶ wrapper ─▶ rank 0 ...
        └─ agent ─▶ torchrun on the next host ────▶ wrapper ─▶ rank k ...

By default torchrun opens two sockets on every interface. Here its agents find one another through a file of the run
folder, and the store that it would offer to its workers is switched off: the rendezvous of the ranks is that of every
launcher (ranks/rendezvous.json). No socket of torchrun is open.
"""

from __future__ import annotations

import os
from pathlib import Path

from paceline.launch.child import python
from paceline.launch.hosts import HostsLauncher, point_hosts, program_on, ranks_by_host
from paceline.launch.launcher import Listener, Outcome, ignore
from paceline.launch.wrapper.wrapped_ranks import run_wrapped, wrapper_command
from paceline.records.run import Manifest
from paceline.storage.folder import RunFolder

_LAST_CALL_S = 1
"""How long torchrun waits for more hosts after all have joined."""
_JOIN_S = 600
"""How long the first agent waits for the last: hosts may start minutes apart."""
_POLL_S = 0.2


class TorchrunLauncher(HostsLauncher):
    """Starts ranks through torchrun, on one host or on several."""

    name = "torchrun"

    def run(self, folder: RunFolder, manifest: Manifest, *, heartbeat_s: float, progress: Listener = ignore) -> Outcome:
        """Start one torchrun per host, wait for the ranks, and return their reports."""
        hosts, shares = point_hosts(manifest.point, self._settings), ranks_by_host(manifest.point)
        programs = []
        for number, (host, ranks) in enumerate(zip(hosts, shares, strict=True)):
            command = self._torchrun(folder, manifest, number, len(ranks))
            programs.append(program_on((host,) * len(ranks), command, ranks, self._settings))
        try:
            return run_wrapped(programs, folder, manifest, heartbeat_s=heartbeat_s, progress=progress)
        finally:
            _store(folder).unlink(missing_ok=True)

    def _torchrun(self, folder: RunFolder, manifest: Manifest, number: int, ranks: int) -> tuple[str, ...]:
        """The command of one host's agent."""
        settings = {"store_type": "file", "join_timeout": _JOIN_S, "last_call_timeout": _LAST_CALL_S}
        return (
            *("env", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"),
            *python("-m", "torch.distributed.run"),
            *("--nnodes", str(manifest.point.hosts), "--nproc-per-node", str(ranks)),
            *("--max-restarts", "0", "--monitor-interval", str(_POLL_S), "--log-dir", os.devnull),
            # The launch time makes the name unique: an agent never joins the rendezvous of an earlier attempt.
            *("--rdzv-backend", "c10d", "--rdzv-id", f"run-{manifest.launched_at_ns}"),
            *("--rdzv-endpoint", str(_store(folder))),
            *("--rdzv-conf", ",".join(f"{key}={value}" for key, value in settings.items())),
            # Agents are numbered in the order of this name; it is never resolved.
            *("--local-addr", f"host-{number:06d}"),
            *("--no-python", *wrapper_command(folder, self._command)),
        )


def _store(folder: RunFolder) -> Path:
    """The file through which the agents of torchrun find one another."""
    return folder.ranks.resolve() / "torchrun.store"
