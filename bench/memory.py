"""Anonymous memory of a process that imports torch and holds the model and its optimizer: the peer.

    python -m bench.memory      prints its RssAnon in bytes after one step

The rank's own figure is read from outside, while it trains on the whole data set.
"""

from __future__ import annotations

import os
import re
from pathlib import Path


def rss_anon_bytes(pid: int | str) -> int:
    """RssAnon of a process: what it holds for itself; 0 when it is gone."""
    try:
        found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch
    from torch.nn import functional

    from bench.peers.plain_loop import network

    torch.set_num_threads(1)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    functional.cross_entropy(model(torch.randn(128, 1, 28, 28)), torch.zeros(128, dtype=torch.int64)).backward()
    optimizer.step()
    print(rss_anon_bytes("self"))


if __name__ == "__main__":
    main()
