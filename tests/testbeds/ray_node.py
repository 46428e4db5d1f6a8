"""One node of the tests' Ray cluster: python ray_node.py PARENT_PID FOLDER HOST ADDRESS CPUS GPUS

Prints the cluster's address when it is up, and stays until it is killed; an empty ADDRESS makes it the head. Made from
Ray's own Node, because `ray start` joins no second node to a cluster that keeps to loopback.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys

from paceline.guard import end_with_parent

_NEW_HOST_NAME = 0x04000000  # CLONE_NEWUTS


def main() -> None:
    parent, folder, host, address, cpus, gpus = sys.argv[1:]
    end_with_parent(int(parent))
    if host:
        assert ctypes.CDLL(None, use_errno=True).unshare(_NEW_HOST_NAME) == 0, os.strerror(ctypes.get_errno())
        socket.sethostname(host)
    from ray._private.node import Node
    from ray._private.parameter import RayParams

    told = RayParams(
        node_ip_address="127.0.0.1",
        num_cpus=int(cpus),
        num_gpus=int(gpus),
        object_store_memory=80_000_000,
        temp_dir=folder,
        include_dashboard=False,
        include_log_monitor=False,
        min_worker_port=0,
        max_worker_port=0,
        **({"gcs_address": address} if address else {}),
    )
    node = Node(told, head=not address, shutdown_at_exit=True, spawn_reaper=True)
    print(node.gcs_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
