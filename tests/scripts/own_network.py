"""python own_network.py COMMAND...: run a command in a network of its own, where there is nothing but loopback.

A script's own `init_process_group` listens on every interface, and gloo on the host's: here nobody can reach them.
Where the system does not allow it (no root), the command runs in the network that there is.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1

if __name__ == "__main__":
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) == 0:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
