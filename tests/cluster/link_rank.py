"""A rank that measures its link to the next whenever it is told to: python link_rank.py RANK SIZE ADDRESS PORT

A line on standard input is a command to measure; rank 0 answers with the links as a line of JSON.
"""

import json
import sys
import time
from dataclasses import asdict

import torch.distributed as dist

from paceline.records.allocation import ProcessFacts
from paceline.training.links import measured_links, pairs


def main() -> None:
    rank, size, address, port = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    store = dist.TCPStore(address, port, size, is_master=rank == 0)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    ranks = [ProcessFacts(rank=other, host=f"h{other + 1}") for other in range(size)]
    for _ in sys.stdin:
        began = time.monotonic()
        links = measured_links(pairs(ranks), ranks, rank)
        if rank == 0:
            took_s = time.monotonic() - began
            print(json.dumps({"took_s": took_s, "links": [asdict(link) for link in links]}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
