"""A rank without torch, for tests of launchers: beats, meets its peers at every step, reports, and can misbehave.

    python light_rank.py [--who 1 --what raise --at 5] [--steps 20] [--step-s 0.005] [--untied] RUN_DIR

The ranks meet in a star, where real ones would: each sends a byte to rank 0 and waits for one back. So a rank
that dies breaks its peers' connections, and one that stands still holds them up, as with real collectives.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from pathlib import Path

from paceline.guard import end_with_launcher, pin
from paceline.identity import Identity, this_rank
from paceline.records.run import Manifest, RankReport
from paceline.storage.codec import read_record, write_atomically, write_record
from paceline.storage.folder import RunFolder
from paceline.storage.pulse import PulseWriter
from paceline.training.rendezvous import rendezvous


class Star:
    """One barrier for all ranks, through rank 0."""

    def __init__(self, identity: Identity, folder: RunFolder, manifest: Manifest) -> None:
        place = rendezvous(identity, folder, manifest)
        if identity.rank == 0:
            with socket.socket(fileno=place.listening_fd) as meeting:
                self.peers = [meeting.accept()[0] for _ in range(identity.size - 1)]
                self.listener = meeting.dup()  # stays open for the length of the run, as a store's does
        else:
            self.peers = [socket.create_connection((place.address, place.port))]
        self.center = identity.rank == 0

    def meet(self) -> None:
        """Wait for all; ConnectionError when one is gone."""
        for turn in (self._receive, self._send) if self.center else (self._send, self._receive):
            turn()

    def _send(self) -> None:
        for peer in self.peers:
            peer.sendall(b".")

    def _receive(self) -> None:
        for peer in self.peers:
            if not peer.recv(1):
                raise ConnectionError("a peer closed its connection")


def misbehave(what: str, folder: RunFolder, rank: int) -> None:
    if what == "raise":
        raise ValueError("told to fail")
    if what == "exit":
        print("leaving with 3")
        os._exit(3)
    if what == "silent":
        os._exit(0)
    if what == "abort":
        os.abort()
    if what == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)
    if what == "sleep":
        time.sleep(3600)
    if what == "child":
        child = subprocess.Popen(["sleep", "3600"])
        write_atomically(folder.path / f"child-{rank}", str(child.pid).encode())


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("--who", type=int, default=-1)
    options.add_argument("--what", default="")
    options.add_argument("--at", type=int, default=5)
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--step-s", type=float, default=0.005)
    options.add_argument("--untied", action="store_true")
    told = options.parse_args()
    identity, folder = this_rank(), RunFolder(told.folder)
    if not told.untied:
        end_with_launcher(identity)
    manifest = read_record(folder.manifest, Manifest)
    if manifest.cores is not None:
        pin(manifest.cores[identity.local_rank])
    write_atomically(folder.path / f"seen-{identity.rank}.json", json.dumps(seen(identity)).encode())
    pulse = PulseWriter(folder.rank_pulse(identity.rank))
    pulse.beat(phase="startup", total_steps=told.steps)
    print(f"rank {identity.rank} starts")
    failed, step = {}, 0
    try:
        star = Star(identity, folder, manifest)
        for step in range(told.steps):
            pulse.beat(phase="compute", step=step)
            if identity.rank == told.who and step == told.at:
                misbehave(told.what, folder, identity.rank)
            time.sleep(told.step_s)
            pulse.beat(phase="communicate", collectives=step + 1)
            star.meet()
        step = told.steps
    except Exception as error:
        failed = {
            "error": f"{type(error).__name__}: {error}",
            "error_kind": "peer" if isinstance(error, ConnectionError) else "own",
            "traceback": traceback.format_exc(),
        }
    write_record(folder.rank_report(identity.rank), report(identity, step, failed))
    pulse.beat(phase="done", step=step)
    if told.what == "linger" and identity.rank == told.who:
        time.sleep(3600)
    return 1 if failed else 0


def seen(identity: Identity) -> dict:
    """What this process was given, for the test to look at."""
    return {
        "rank": identity.rank,
        "size": identity.size,
        "store_host": identity.store_host,
        "has_store": identity.store_fd is not None,
        "environment": dict(os.environ),
        "affinity": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [],
        "session": os.getsid(0),
        "pid": os.getpid(),
        "stdin": sys.stdin.read(),
        "sockets": [fd for fd in range(3, 64) if is_socket(fd)],
    }


def is_socket(fd: int) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
    except OSError:
        return False


def report(identity: Identity, steps: int, failed: dict[str, str]) -> RankReport:
    return RankReport(
        rank=identity.rank,
        status="failed" if failed else "done",
        host=identity.host,
        pid=os.getpid(),
        device="cpu",
        backend="light",
        threads=int(os.environ.get("OMP_NUM_THREADS", "0")),
        affinity=tuple(sorted(os.sched_getaffinity(0))),
        versions={"python": sys.version.split()[0]},
        steps=steps,
        ended_at_ns=time.monotonic_ns(),
        **failed,  # pyright: ignore[reportArgumentType]
    )


if __name__ == "__main__":
    sys.exit(main())
