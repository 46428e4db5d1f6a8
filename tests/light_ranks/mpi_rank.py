"""A rank that talks through MPI and needs no torch: python mpi_rank.py RUN_DIR

Sums a large array over all ranks, says where it listens, and reports.
"""

import json
import sys
from pathlib import Path

import psutil
from light_rank import report

from paceline.guard import end_with_launcher
from paceline.identity import this_rank
from paceline.storage.codec import write_atomically, write_record
from paceline.storage.folder import RunFolder
from paceline.storage.pulse import PulseWriter


def main() -> None:
    import numpy
    from mpi4py import MPI  # starts MPI

    identity, folder = this_rank(), RunFolder(Path(sys.argv[1]))
    end_with_launcher(identity)
    pulse = PulseWriter(folder.rank_pulse(identity.rank))
    pulse.beat(phase="compute", total_steps=1)
    everyone = MPI.COMM_WORLD
    total = numpy.empty(1_000_000)
    everyone.Allreduce(numpy.full(1_000_000, everyone.rank + 1.0), total)
    listening = [c.laddr.ip for c in psutil.Process().net_connections("inet") if c.status == psutil.CONN_LISTEN]
    said = {
        "rank": everyone.rank,
        "size": everyone.size,
        "sum": [float(total.min()), float(total.max())],
        "library": MPI.Get_library_version(),
        "listening": sorted(set(listening)),
    }
    write_atomically(folder.path / f"mpi-{identity.rank}.json", json.dumps(said).encode())
    write_record(folder.rank_report(identity.rank), report(identity, 1, {}))
    pulse.beat(phase="done", step=1)


if __name__ == "__main__":
    main()
