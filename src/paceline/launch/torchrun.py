"""Ranks under torchrun: one agent of torch.distributed.run per host, one keeper and rank for each of its workers.

    launcher ──▶ torchrun on this host ───────────▶ keeper ─▶ rank 0 ...
        └─ agent ─▶ torchrun on the next host ────▶ keeper ─▶ rank k ...

Left alone, torchrun listens on every interface, twice. Here its agents find one another through a file of the run
folder, and the store that it would offer to its workers is switched off: the ranks meet as under every launcher
(ranks/meeting.json), so no socket of torchrun's is open at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from paceline.launch.base import Launcher, Outcome, Placement, Progress, ignore
from paceline.launch.child import python
from paceline.launch.hosts import check_hosts, placement_on_hosts, point_hosts, program_on, ranks_by_host
from paceline.launch.kept import run_wrapped, wrapper_command
from paceline.records.folder import RunFolder
from paceline.records.run import Manifest
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point

_LAST_CALL_S = 1
"""How long torchrun waits for more hosts once all are there."""
_JOIN_S = 600
"""How long its first agent waits for the last: hosts may start minutes apart."""
_LOOK_S = 0.2


class TorchrunLauncher(Launcher):
    """Starts ranks through torchrun, on one host or on several."""

    name = "torchrun"

    def __init__(self, command: tuple[str, ...] | None = None, settings: LaunchSettings = LaunchSettings()) -> None:
        """`command` stands in for the worker, RUN_DIR is appended to it: tests use one without torch."""
        self._command = command or ()
        self._settings = settings

    def placement(self, point: Point) -> Placement:
        """Where the ranks of a point would run, with the reason."""
        return placement_on_hosts(point, self._settings)

    def check(self, point: Point) -> None:
        """Raise RequestError where the hosts or the interface between them are not named."""
        check_hosts(point, self._settings)

    def run(
        self,
        folder: RunFolder,
        manifest: Manifest,
        *,
        heartbeat_s: float,
        progress: Callable[[Progress], None] = ignore,
    ) -> Outcome:
        """Start one torchrun per host, wait for the ranks, and bring their reports; when this ends, none is left."""
        point = manifest.point
        hosts, shares = point_hosts(point, self._settings), ranks_by_host(point)
        programs = [
            program_on(
                (host,) * len(ranks), self._torchrun(folder, manifest, number, len(ranks)), ranks, self._settings
            )
            for number, (host, ranks) in enumerate(zip(hosts, shares, strict=True))
        ]
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
            *("--max-restarts", "0", "--monitor-interval", str(_LOOK_S), "--log-dir", os.devnull),
            # Clock and attempt in its name: nothing of an earlier attempt is taken for this one's.
            *("--rdzv-backend", "c10d", "--rdzv-id", f"run-{manifest.launched_at_ns}"),
            *("--rdzv-endpoint", str(_store(folder))),
            *("--rdzv-conf", ",".join(f"{key}={value}" for key, value in settings.items())),
            # Agents are numbered in the order of this name, which is looked up nowhere.
            *("--local-addr", f"host-{number:06d}"),
            *("--no-python", *wrapper_command(folder, self._command)),
        )


def _store(folder: RunFolder) -> Path:
    """The file through which torchrun's agents find one another."""
    return folder.ranks.resolve() / "torchrun.store"
