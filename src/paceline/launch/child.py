"""A Python process of our own, whoever starts it: its command, and what its libraries read when they load."""

from __future__ import annotations

import sys

_LOOPBACK = "lo" if sys.platform == "linux" else "lo0"
_INTERFACE_VARIABLES = ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def python(*arguments: str) -> tuple[str, ...]:
    """The command that runs this Python, e.g. with "-m" and a module.

    -P: a file in the current folder that is called like a module of Python must not stand in for it.
    """
    return (sys.executable, "-P", *arguments)


def thread_environment(threads: int) -> dict[str, str]:
    """The variables that keep every library that computes to so many threads."""
    return dict.fromkeys(_THREAD_VARIABLES, str(threads))


def loopback_environment() -> dict[str, str]:
    """The variables that keep collectives to this machine: nothing listens beyond it."""
    return dict.fromkeys(_INTERFACE_VARIABLES, _LOOPBACK)
