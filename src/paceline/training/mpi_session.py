"""MPI, for whatever talks through it: started when first asked for, ended when the rank is done. No torch.

    mpiexec of          library that mpi4py has to load      how it comes to know
    MPICH               libmpi.so.12, the `mpich` wheel's     found first, beside the Python that runs
    Open MPI            libmpi.so.40                          the keeper says MPI4PY_MPIABI=openmpi

Left alone, mpi4py starts MPI when it is imported and ends it with the interpreter. A rank that talks through
gloo should not pay for that, and one that failed must not wait in MPI_Finalize for peers that are gone: so
both are done here. All calls come from the main thread, which is what MPI is told (FUNNELED): it then takes no locks.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from paceline.errors import RequestError, RunError

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm


def world(rank: int, size: int) -> Intracomm:
    """The communicator of all processes of the run, numbered as they are here."""
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
    """End MPI after a good run, so that mpiexec sees a clean end; nothing where it was never started."""
    if "mpi4py.MPI" in sys.modules:
        from mpi4py import MPI

        if MPI.Is_initialized() and not MPI.Is_finalized():
            MPI.Finalize()


def is_finalized() -> bool:
    """Whether MPI was started and ended. MPICH tells its mpiexec so only when the process exits in order, and one that
    is told nothing takes the process for lost and kills the others."""
    if "mpi4py.MPI" not in sys.modules:
        return False
    from mpi4py import MPI

    return MPI.Is_finalized()
