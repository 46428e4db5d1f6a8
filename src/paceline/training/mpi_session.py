"""MPI: initialised when a rank first needs it, finalised when the rank is done. No torch.

    mpiexec of          library that mpi4py has to load      how it is found
    MPICH               libmpi.so.12, the `mpich` wheel's     first in the path of this Python
    Open MPI            libmpi.so.40                          the rank wrapper sets MPI4PY_MPIABI=openmpi

By default mpi4py initialises MPI on import and finalises it with the interpreter. A rank that communicates through
gloo should not pay for that, and a failed rank must not wait in MPI_Finalize for peers that have ended. All calls are
made by the main thread (MPI_THREAD_FUNNELED), so MPI takes no locks.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from paceline.errors import RequestError, RunError

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm


def world(rank: int, size: int) -> Intracomm:
    """Communicator of all processes of the run, with the same rank numbers as here."""
    try:
        import mpi4py

        if "mpi4py.MPI" not in sys.modules:
            mpi4py.rc(initialize=False, finalize=False)
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise RequestError(
            f"MPI cannot be loaded: {error}.",
            right="mpi4py has to be installed, and to find the library that belongs to the mpiexec that started the "
            "ranks: libmpi.so.12 for MPICH, libmpi.so.40 for Open MPI.",
            next="Install it with `pip install 'paceline[mpi]'`, or name the library's file in MPI4PY_LIBMPI.",
        ) from error
    if not MPI.Is_initialized():
        MPI.Init_thread(MPI.THREAD_FUNNELED)
    found = MPI.COMM_WORLD
    if (found.rank, found.size) != (rank, size):
        raise RunError(
            f"This is rank {rank} of {size}, but MPI calls it {found.rank} of {found.size}.",
            right="The program that starts the ranks and the library that they load have to belong together; "
            f"loaded was {MPI.Get_library_version().split(',')[0].splitlines()[0]}.",
            next="Name the mpiexec of that library with --set launch.mpiexec=PATH, or the library with MPI4PY_LIBMPI.",
        )
    return found


def finalize() -> None:
    """Finalise MPI after a successful run, so that mpiexec sees a clean end; no-op if MPI was never initialised."""
    if "mpi4py.MPI" in sys.modules:
        from mpi4py import MPI

        if MPI.Is_initialized() and not MPI.Is_finalized():
            MPI.Finalize()


def is_finalized() -> bool:
    """Whether MPI was initialised and finalised.

    MPICH reports this to mpiexec only when the process exits in order. Otherwise mpiexec treats the process as crashed
    and kills the others.
    """
    if "mpi4py.MPI" not in sys.modules:
        return False
    from mpi4py import MPI

    return MPI.Is_finalized()
